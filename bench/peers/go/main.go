// The Go peers of the native benches in one program; its first argument names the network.
//
//	peers commstime SAMPLES PER
//	peers commstime-par SAMPLES PER   the same with a parallel delta
//	peers buffer SAMPLES PER
//	peers contention N SAMPLES PER
//	peers select SAMPLES PER
//	peers ready SAMPLES PER       select, with a reader that yields
//	peers ring N SAMPLES PER
//	peers echo SAMPLES PER CONNECTIONS
//	peers farm WORKERS STEPS SLOTS SAMPLES PER
//	peers pipeline STAGES SAMPLES PER
//	peers tree DEPTH SAMPLES
//
// Output: a line "ns V V …" of samples, and for the ring a line "bytes V".
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// samples collects one figure a sample and prints them as one line.
type samples []float64

func (s *samples) add(start time.Time, operations int) {
	*s = append(*s, float64(time.Since(start).Nanoseconds())/float64(operations))
}

func (s samples) print() {
	fmt.Print("ns")
	for _, v := range s {
		fmt.Printf(" %.3f", v)
	}
	fmt.Println()
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		fail("%q is not a number of at least 1", text)
	}
	return n
}

func main() {
	usage := "usage: peers commstime|commstime-par|buffer SAMPLES PER | contention N SAMPLES PER | select SAMPLES PER | ready SAMPLES PER | ring N SAMPLES PER | echo SAMPLES PER CONNECTIONS | farm WORKERS STEPS SLOTS SAMPLES PER | pipeline STAGES SAMPLES PER | tree DEPTH SAMPLES"
	args := os.Args[1:]
	switch {
	case len(args) == 6 && args[0] == "farm":
		slots := 0
		if args[3] != "0" {
			slots = number(args[3])
		}
		farm(number(args[1]), number(args[2]), slots, number(args[4]), number(args[5]))
	case len(args) == 4 && args[0] == "pipeline":
		pipeline(number(args[1]), number(args[2]), number(args[3]))
	case len(args) == 3 && args[0] == "tree":
		tree(number(args[1]), number(args[2]))
	case len(args) == 3 && (args[0] == "commstime" || args[0] == "commstime-par"):
		commstime(number(args[1]), number(args[2]), args[0] == "commstime-par")
	case len(args) == 3 && args[0] == "buffer":
		buffer(number(args[1]), number(args[2]))
	case len(args) == 4 && args[0] == "contention":
		contention(number(args[1]), number(args[2]), number(args[3]))
	case len(args) == 3 && (args[0] == "select" || args[0] == "ready"):
		selectTen(number(args[1]), number(args[2]), args[0] == "ready")
	case len(args) == 4 && args[0] == "ring":
		ring(number(args[1]), number(args[2]), number(args[3]))
	case len(args) == 4 && args[0] == "echo":
		echo(number(args[1]), number(args[2]), number(args[3]))
	default:
		fail("%s", usage)
	}
}
