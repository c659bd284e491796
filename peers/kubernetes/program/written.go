package program

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// WrittenBytes of this process so far, to files and sockets: the line wchar.
func WrittenBytes() (int64, error) {
	text, err := os.ReadFile("/proc/self/io")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return 0, errors.Join(err, fmt.Errorf("/proc/self/io: unexpected content %q", text))
	}
	return strconv.ParseInt(fields[3], 10, 64)
}
