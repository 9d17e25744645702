// nonames answers every question for a name with "there is no such name". It is the name server of a network that has no
// way out: Docker's own resolver, which hands on what it doesn't know, gives its client no answer at all when nobody
// answers it, and then each look-up of a name outside takes 20 s to fail.
//
//	nonames 198.51.100.53:53
package main

import (
	"encoding/binary"
	"log"
	"net"
	"os"
)

const (
	headerBytes = 12
	typeBytes   = 4 // type and class, behind the name of a question

	response         = 1 << 15
	recursionAllowed = 1 << 7
	keptFromQuestion = 0x7900 // operation code, and whether recursion is wished for
	noSuchName       = 3
)

func main() {
	connection, err := net.ListenPacket("udp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	buffer := make([]byte, 4096)
	for {
		size, from, err := connection.ReadFrom(buffer)
		if err != nil {
			log.Fatal(err)
		}
		if answer := refuse(buffer[:size]); answer != nil {
			// Whoever asked may be gone.
			_, _ = connection.WriteTo(answer, from)
		}
	}
}

// refuse makes the answer to a question of one name, or nothing for anything else (RFC 1035, section 4).
func refuse(question []byte) []byte {
	if len(question) < headerBytes || binary.BigEndian.Uint16(question[4:]) != 1 {
		return nil
	}
	end := headerBytes
	for end < len(question) && question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 1 + typeBytes
	if end > len(question) {
		return nil
	}
	answer := append([]byte(nil), question[:end]...)
	flags := binary.BigEndian.Uint16(question[2:])
	if flags&response != 0 {
		return nil
	}
	binary.BigEndian.PutUint16(answer[2:], flags&keptFromQuestion|response|recursionAllowed|noSuchName)
	for count := 6; count < headerBytes; count += 2 { // nothing follows the question
		binary.BigEndian.PutUint16(answer[count:], 0)
	}
	return answer
}
