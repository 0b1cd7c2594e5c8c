package spool

// File is what a log needs of the file that it writes.
type File = file

// WrapFile puts something between the log and its file.
func (l *Log) WrapFile(wrap func(File) File) {
	l.create = func() (file, error) {
		f, err := l.createFile()
		if err != nil {
			return nil, err
		}
		return wrap(f), nil
	}
}

// Marker stands between the head and the tail of a stream that was cut.
const Marker = marker
