package main

import "time"

// CommsTime: prefix → delta → successor → prefix, and delta → consumer; with a sequential delta or
// a parallel one.

func prefix(in <-chan int, out chan<- int) {
	out <- 0
	for {
		out <- <-in
	}
}

func delta(in <-chan int, left, right chan<- int) {
	for {
		x := <-in
		left <- x
		right <- x
	}
}

// Writes to both channels in parallel: to one of them by a goroutine of its own, as is usual in Go.
func parallelDelta(in <-chan int, left, right chan<- int) {
	done := make(chan struct{})
	for {
		x := <-in
		go func() {
			left <- x
			done <- struct{}{}
		}()
		right <- x
		<-done
	}
}

func successor(in <-chan int, out chan<- int) {
	for {
		out <- <-in + 1
	}
}

func commstime(count, per int, parallel bool) {
	a, b, c, d := make(chan int), make(chan int), make(chan int), make(chan int)
	go prefix(c, a)
	if parallel {
		go parallelDelta(a, b, d)
	} else {
		go delta(a, b, d)
	}
	go successor(b, c)
	expected := 0
	read := func(n int) {
		for i := 0; i < n; i++ {
			if x := <-d; x != expected {
				fail("commstime: read %d, expected %d", x, expected)
			}
			expected++
		}
	}
	read(per)
	var s samples
	for k := 0; k < count; k++ {
		start := time.Now()
		read(per)
		s.add(start, 4*per)
	}
	s.print()
}
