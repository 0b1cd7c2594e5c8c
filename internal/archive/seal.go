package archive

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/cove-sandbox/cove"
)

// The seal at the end of a file says how long the stream is and what its
// checksum is.
//
//	file = stream magic(8) length(8) crc32c(4)
const (
	sealMagic = "covearc1"
	sealLen   = len(sealMagic) + 8 + 4
)

// castagnoli is made when it is first needed: most processes save nothing.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// seal is the checksum of a stream that is written or read.
type seal struct {
	n   int64
	crc uint32
}

func (s *seal) add(p []byte) {
	s.n += int64(len(p))
	s.crc = crc32.Update(s.crc, castagnoli(), p)
}

func (s *seal) bytes() []byte {
	b := append(make([]byte, 0, sealLen), sealMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.n)) //nolint:gosec // a length
	return binary.LittleEndian.AppendUint32(b, s.crc)
}

// readSeal reads the seal of a file, which it must fit.
func readSeal(f *os.File) (seal, bool, error) {
	info, err := f.Stat()
	if err != nil {
		return seal{}, false, err
	}
	n := info.Size() - int64(sealLen)
	if n < 0 {
		return seal{}, false, nil
	}
	b := make([]byte, sealLen)
	if _, err := f.ReadAt(b, n); err != nil {
		return seal{}, false, err
	}
	s := seal{n, binary.LittleEndian.Uint32(b[len(b)-4:])}
	return s, string(b) == string(s.bytes()), nil
}

// sealer writes a stream and takes its checksum.
type sealer struct {
	w io.Writer
	seal
}

func (s *sealer) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.add(p[:n])
	return n, err
}

// sealed reads the stream of a file. At its end it compares the checksum.
type sealed struct {
	f    *os.File
	id   cove.ID
	want seal
	have seal
}

func (s *sealed) Read(p []byte) (int, error) {
	left := s.want.n - s.have.n
	if left == 0 {
		if s.have != s.want {
			return 0, damaged(s.id)
		}
		return 0, io.EOF
	}
	n, err := s.f.Read(p[:min(int64(len(p)), left)])
	s.have.add(p[:n])
	if err == io.EOF { //nolint:errorlint // a file gives it as it is: it was cut off while it was read
		err = damaged(s.id)
	}
	return n, err
}

func (s *sealed) Close() error { return s.f.Close() }

func damaged(id cove.ID) error {
	return cove.Errorf(cove.Unavailable, "the archive of %s is damaged: its checksum is not right", id).
		Remedy("put back a good copy of its file from a backup of the archives folder, or close the session")
}
