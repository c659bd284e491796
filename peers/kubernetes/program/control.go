package program

import (
	"bufio"
	"encoding/json"
	"net"
)

const longestCommand = 1 << 20

type answer struct {
	Value any    `json:"value"`
	Error string `json:"error,omitempty"`
}

// Obey does what whoever connects says, until the listener is closed: a line of JSON is a command, and gets a line in answer.
func Obey[C any](listener net.Listener, do func(C) (any, error)) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go converse(connection, do)
	}
}

func converse[C any](connection net.Conn, do func(C) (any, error)) {
	defer connection.Close()
	lines, encoder := bufio.NewScanner(connection), json.NewEncoder(connection)
	lines.Buffer(nil, longestCommand)
	for lines.Scan() {
		var wanted C
		var said answer
		err := json.Unmarshal(lines.Bytes(), &wanted)
		if err == nil {
			said.Value, err = do(wanted)
		}
		if err != nil {
			said.Error = err.Error()
		}
		if encoder.Encode(said) != nil {
			return
		}
	}
}
