package main

import (
	"runtime"
	"time"
)

// StressedAlt with a static select over ten channels and two writers at each: the form of source
// that Go compiles best.
//
// On one processor, Go's scheduler runs the goroutine that was woken last. So a reader and the
// writer that it has just served alternate for a time slice, while the other writers do not run:
// most selects find little ready and block. This is Go's own behaviour, and is measured as it is.
// With yield, the reader lets the others run after every twenty selects: then nearly all selects
// find writers waiting, as they do where the scheduler is first come, first served.

func selectTen(count, per int, yield bool) {
	var c [10]chan int
	for i := range c {
		c[i] = make(chan int)
		for w := 0; w < 2; w++ {
			go func(out chan<- int, mark int) {
				for {
					out <- mark
				}
			}(c[i], i)
		}
	}
	var taken [10]int
	read := func(n int) {
		for k := 0; k < n; k++ {
			x, i := 0, 0
			select {
			case x = <-c[0]:
				i = 0
			case x = <-c[1]:
				i = 1
			case x = <-c[2]:
				i = 2
			case x = <-c[3]:
				i = 3
			case x = <-c[4]:
				i = 4
			case x = <-c[5]:
				i = 5
			case x = <-c[6]:
				i = 6
			case x = <-c[7]:
				i = 7
			case x = <-c[8]:
				i = 8
			case x = <-c[9]:
				i = 9
			}
			if x != i {
				fail("select: channel %d gave %d", i, x)
			}
			taken[i]++
			if yield && k%20 == 19 {
				runtime.Gosched()
			}
		}
	}
	read(per)
	var s samples
	for k := 0; k < count; k++ {
		start := time.Now()
		read(per)
		s.add(start, per)
	}
	for i, n := range taken {
		if yield && n == 0 {
			fail("select: channel %d was never chosen", i)
		}
	}
	s.print()
}
