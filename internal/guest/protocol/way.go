package protocol

// Listen asks the agent for the sockets of a way out: what is connected to one of
// the ports, at any address, comes to the host.
type Listen struct {
	Ports []uint16
	Names bool // also those of a name server, of which packets go over a stream
}

// Encode returns the body of a message.
func (l Listen) Encode() []byte {
	var e Encoder
	e.Uint(uint64(len(l.Ports)))
	for _, p := range l.Ports {
		e.Uint(uint64(p))
	}
	e.Bool(l.Names)
	return e.Bytes()
}

// DecodeListen is the inverse of [Listen.Encode].
func DecodeListen(b []byte) (Listen, error) {
	d := NewDecoder(b)
	var l Listen
	for range d.UpTo(MaxPorts) {
		l.Ports = append(l.Ports, uint16(d.UpTo(0xffff))) //nolint:gosec // bounded
	}
	l.Names = d.Bool()
	return l, d.End()
}

// Accepted tells of a connection, which is attached.
type Accepted struct {
	Address [4]byte // that it was made to
	Port    uint16
	Names   bool // it is one to the name server
}

// Encode returns the body of a message.
func (a Accepted) Encode() []byte {
	e := Encoder{b: append([]byte(nil), a.Address[:]...)}
	e.Uint(uint64(a.Port))
	e.Bool(a.Names)
	return e.Bytes()
}

// DecodeAccepted is the inverse of [Accepted.Encode].
func DecodeAccepted(b []byte) (Accepted, error) {
	d := NewDecoder(b)
	var a Accepted
	for i := range a.Address {
		a.Address[i] = d.Byte(0xff)
	}
	a.Port = uint16(d.UpTo(0xffff)) //nolint:gosec // bounded
	a.Names = d.Bool()
	return a, d.End()
}

// Query is a packet of somebody who asks for a name, or the answer to him.
type Query struct {
	Address [4]byte // his
	Port    uint16
	Packet  string
}

// Encode returns the payload of a record.
func (q Query) Encode() []byte {
	e := Encoder{b: append([]byte(nil), q.Address[:]...)}
	e.Uint(uint64(q.Port))
	e.Text(q.Packet)
	return e.Bytes()
}

// DecodeQuery is the inverse of [Query.Encode].
func DecodeQuery(b []byte) (Query, error) {
	d := NewDecoder(b)
	var q Query
	for i := range q.Address {
		q.Address[i] = d.Byte(0xff)
	}
	q.Port = uint16(d.UpTo(0xffff)) //nolint:gosec // bounded
	q.Packet = d.Text(MaxQuery)
	return q, d.End()
}
