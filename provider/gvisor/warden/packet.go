//go:build linux

package warden

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

var (
	errTooLong = errors.New("the message is too long")
	errShape   = errors.New("the message is not whole")
)

// writePatience bounds how long the other end may leave messages unread.
const writePatience = 10 * time.Second

// send writes one message, with descriptors.
func send(conn *net.UnixConn, message any, files ...*os.File) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return errTooLong
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = syscall.UnixRights(fds...)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
		return err
	}
	_, _, err = conn.WriteMsgUnix(b, rights, nil)
	return err
}

// receive reads one message. The caller closes the files, also with an error.
func receive(conn *net.UnixConn, buf []byte, message any) ([]*os.File, error) {
	oob := make([]byte, syscall.CmsgSpace(maxFiles*4))
	n, oobn, flags, _, err := conn.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, err
	}
	files, err := filesOf(oob[:oobn])
	if err == nil && flags&(syscall.MSG_TRUNC|syscall.MSG_CTRUNC) != 0 {
		err = errTooLong
	}
	if err == nil {
		err = json.Unmarshal(buf[:n], message)
	}
	if err != nil {
		return files, fmt.Errorf("%w: %w", errShape, err)
	}
	return files, nil
}

// filesOf takes the descriptors out of a control message.
func filesOf(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "stream"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
