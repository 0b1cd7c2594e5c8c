package archive

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/cove-sandbox/cove"
)

// The seal at the end of a file says whose stream it is, how long it is and what
// its checksum is, which is that of the stream with the id behind it. Files of
// builds before it have no id; they are read as they are.
//
//	file = stream id(26) magic(8) length(8) crc32c(4)
//	old  = stream magic(8) length(8) crc32c(4)
const (
	sealMagic    = "covearc2"
	oldSealMagic = "covearc1"
	oldSealLen   = len(sealMagic) + 8 + 4
	idLen        = 26
	sealLen      = idLen + oldSealLen
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

// of returns the checksum of the stream with the id behind it.
func (s seal) of(id cove.ID) seal {
	return seal{s.n, crc32.Update(s.crc, castagnoli(), []byte(id))}
}

// bytes returns the seal of a stream of a session.
func (s seal) bytes(id cove.ID) []byte {
	return append([]byte(id), s.of(id).footer(sealMagic)...)
}

func (s seal) footer(magic string) []byte {
	b := append(make([]byte, 0, oldSealLen), magic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.n)) //nolint:gosec // a length
	return binary.LittleEndian.AppendUint32(b, s.crc)
}

// readSeal reads the seal of a file, which it must fit. The id is "" in a file of an
// older build.
func readSeal(f *os.File) (_ seal, of cove.ID, ok bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return seal{}, "", false, err
	}
	b := make([]byte, min(info.Size(), int64(sealLen)))
	if _, err := f.ReadAt(b, info.Size()-int64(len(b))); err != nil || len(b) < oldSealLen {
		return seal{}, "", false, err
	}
	footer := b[len(b)-oldSealLen:]
	s := seal{info.Size() - int64(len(b)), binary.LittleEndian.Uint32(b[len(b)-4:])}
	if len(b) == sealLen && string(footer) == string(s.footer(sealMagic)) {
		of = cove.ID(b[:idLen])
		return s, of, of.Valid(), nil
	}
	s.n = info.Size() - int64(oldSealLen)
	return s, "", string(footer) == string(s.footer(oldSealMagic)), nil
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
	of   cove.ID // as the seal says; "" in a file of an older build
	want seal
	have seal
}

func (s *sealed) Read(p []byte) (int, error) {
	left := s.want.n - s.have.n
	if left == 0 {
		if s.have.of(s.of) != s.want {
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

// foreign is the error of a file that has the name of one session and the files of
// another.
func foreign(id, of cove.ID) error {
	return cove.Errorf(cove.Unavailable, "the archive of %s is damaged: it holds the files of session %s", id, of).
		Remedy("put back the session's own file from a backup of the archives folder, or close the session")
}
