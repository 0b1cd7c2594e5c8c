package duck

import (
	"fmt"
	"strings"

	c "github.com/duckdb/duckdb-go-bindings"
)

// Shape is a type, with all that is needed to read its values.
type Shape struct {
	// Type is its name in the engine's words.
	Type string

	id           c.Type
	width, scale uint8    // of a decimal
	inner        c.Type   // what holds a decimal or an enum
	words        []string // of an enum
	names        []string // of fields or members
	kids         []*Shape
	size         int  // of an array
	json         bool // a text that is a document
	write        appender
}

// shapeOf reads a type. One that has no form outside of the engine has a shape, too:
// Missing tells.
func shapeOf(t c.LogicalType) *Shape {
	s := &Shape{id: c.GetTypeId(t)}
	s.Type, s.write = plain[s.id], appenders[s.id]
	s.compose(t)
	if alias := c.LogicalTypeGetAlias(t); alias != "" {
		s.Type = alias
		s.json = s.id == c.TypeVarchar && alias == "JSON"
	}
	return s
}

// plain has the types that are nothing but a name.
var plain = map[c.Type]string{
	c.TypeBoolean: "BOOLEAN", c.TypeTinyInt: "TINYINT", c.TypeSmallInt: "SMALLINT", c.TypeInteger: "INTEGER",
	c.TypeBigInt: "BIGINT", c.TypeUTinyInt: "UTINYINT", c.TypeUSmallInt: "USMALLINT", c.TypeUInteger: "UINTEGER",
	c.TypeUBigInt: "UBIGINT", c.TypeHugeInt: "HUGEINT", c.TypeUHugeInt: "UHUGEINT", c.TypeFloat: "FLOAT",
	c.TypeDouble: "DOUBLE", c.TypeDate: "DATE", c.TypeTime: "TIME", c.TypeTimeNS: "TIME_NS", c.TypeTimeTZ: "TIME WITH TIME ZONE",
	c.TypeTimestamp: "TIMESTAMP", c.TypeTimestampS: "TIMESTAMP_S", c.TypeTimestampMS: "TIMESTAMP_MS",
	c.TypeTimestampNS: "TIMESTAMP_NS", c.TypeTimestampTZ: "TIMESTAMP WITH TIME ZONE", c.TypeInterval: "INTERVAL",
	c.TypeVarchar: "VARCHAR", c.TypeBlob: "BLOB", c.TypeBit: "BIT", c.TypeUUID: "UUID", c.TypeSQLNull: `"NULL"`,
	c.TypeBigNum: "BIGNUM", c.TypeGeometry: "GEOMETRY", c.TypeVariant: "VARIANT",
}

// compose reads what a type is made of.
func (s *Shape) compose(t c.LogicalType) {
	switch s.id { //nolint:exhaustive // All others are made of nothing.
	case c.TypeDecimal:
		s.width, s.scale, s.inner = c.DecimalWidth(t), c.DecimalScale(t), c.DecimalInternalType(t)
		s.Type = fmt.Sprintf("DECIMAL(%d,%d)", s.width, s.scale)
	case c.TypeEnum:
		s.inner, s.Type = c.EnumInternalType(t), "ENUM"
		s.words = make([]string, c.EnumDictionarySize(t))
		for i := range s.words {
			s.words[i] = c.EnumDictionaryValue(t, c.IdxT(i))
		}
	case c.TypeList:
		s.add("", c.ListTypeChildType(t))
		s.Type = s.kids[0].Type + "[]"
	case c.TypeArray:
		s.size = count(c.ArrayTypeArraySize(t))
		s.add("", c.ArrayTypeChildType(t))
		s.Type = fmt.Sprintf("%s[%d]", s.kids[0].Type, s.size)
	case c.TypeMap:
		s.add("key", c.MapTypeKeyType(t))
		s.add("value", c.MapTypeValueType(t))
		s.Type = fmt.Sprintf("MAP(%s, %s)", s.kids[0].Type, s.kids[1].Type)
	case c.TypeStruct:
		for i := range c.StructTypeChildCount(t) {
			s.add(c.StructTypeChildName(t, i), c.StructTypeChildType(t, i))
		}
		s.Type = "STRUCT(" + s.fields() + ")"
	case c.TypeUnion:
		for i := range c.UnionTypeMemberCount(t) {
			s.add(c.UnionTypeMemberName(t, i), c.UnionTypeMemberType(t, i))
		}
		s.Type = "UNION(" + s.fields() + ")"
	}
}

// add takes the type and gives it back to the engine.
func (s *Shape) add(name string, t c.LogicalType) {
	s.names = append(s.names, name)
	s.kids = append(s.kids, shapeOf(t))
	c.DestroyLogicalType(&t)
}

func (s *Shape) fields() string {
	parts := make([]string, len(s.kids))
	for i, kid := range s.kids {
		parts[i] = Quote(s.names[i]) + " " + kid.Type
	}
	return strings.Join(parts, ", ")
}

// Missing returns the name of a type within this one whose values cannot be read
// here, or "".
func (s *Shape) Missing() string {
	if s.write == nil {
		return s.Type
	}
	for _, kid := range s.kids {
		if name := kid.Missing(); name != "" {
			return name
		}
	}
	return ""
}

// Quote writes a name as the engine reads it, whatever it is made of.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Literal writes a text as the engine reads it.
func Literal(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
