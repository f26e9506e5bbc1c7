package main

import "time"

// CommsTime with a sequential delta: prefix → delta → successor → prefix, and delta → consumer.

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

func successor(in <-chan int, out chan<- int) {
	for {
		out <- <-in + 1
	}
}

func commstime(count, per int) {
	a, b, c, d := make(chan int), make(chan int), make(chan int), make(chan int)
	go prefix(c, a)
	go delta(a, b, d)
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
