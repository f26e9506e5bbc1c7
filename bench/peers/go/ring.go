package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// A ring of n goroutines, each with a body of two lines; a token goes round.

func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		fail("ring: %v", err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		fail("ring: /proc/self/statm: %v", err)
	}
	return pages * os.Getpagesize()
}

func element(in <-chan int, out chan<- int) {
	for {
		x := <-in
		out <- x + 1
	}
}

func ring(n, count, per int) {
	runtime.GC()
	before := resident()
	first := make(chan int)
	in := first
	for i := 1; i < n; i++ { // main is the n-th process of the ring
		out := make(chan int)
		go element(in, out)
		in = out
	}
	last := in
	lap := func() {
		first <- 0
		if x := <-last; x != n-1 {
			fail("ring: the token came back as %d, expected %d", x, n-1)
		}
	}
	lap()
	fmt.Printf("bytes %.1f\n", float64(resident()-before)/float64(n))
	var s samples
	for k := 0; k < count; k++ {
		start := time.Now()
		for l := 0; l < per; l++ {
			lap()
		}
		s.add(start, per*n)
	}
	s.print()
}
