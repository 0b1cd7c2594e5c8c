//go:build linux

package keeper

// Receive is the next packet of a socket, which it closes.
func Receive(fd int) ([]byte, error) {
	conn, err := connOf(fd)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	text, files, err := newReceiver(conn).next()
	closeAll(files)
	return text, err
}
