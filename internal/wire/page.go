package wire

// Page is a part of a list. NextCursor is where to go on; it is left out at
// the end.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"`
}
