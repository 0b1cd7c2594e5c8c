// Package archive keeps the workspaces of stopped sessions as tar files in one
// directory of the host.
//
// A stream is first written under a name that marks it as a draft, brought to
// the disk, and then renamed: an archive is whole or not there, also after a
// crash. It ends with the id of its session and a checksum over both, which are
// compared when it is read: a disk may lie, and a file may have another's name. Files are readable by their owner alone. All names are resolved below
// the directory by the operating system (os.Root), and are made only from ids
// that have the form of one.
//
// This package must not look into a stream. What is in it comes from a sandbox
// and is unpacked inside one, never here.
package archive
