package measure

import (
	"os"
	"runtime"
	"strings"
)

// Machine says what was measured on, without saying whose it is.
type Machine struct {
	Cores  int    `json:"cores"`
	OS     string `json:"os"` // with the version of the kernel
	Arch   string `json:"arch"`
	Go     string `json:"go"`
	AsRoot bool   `json:"as_root"`
}

// ThisMachine describes the machine of this process.
func ThisMachine() Machine {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	name := runtime.GOOS
	if err == nil {
		// What follows the number is often a name of somebody's own.
		number, _, _ := strings.Cut(strings.TrimSpace(string(kernel)), "-")
		name = "Linux " + number
	}
	return Machine{Cores: runtime.NumCPU(), OS: name, Arch: runtime.GOARCH, Go: runtime.Version(), AsRoot: os.Geteuid() == 0}
}
