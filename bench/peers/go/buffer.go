package main

import "time"

// One goroutine writes and another reads, over a channel of capacity 1024.
func buffer(count, per int) {
	c := make(chan int, 1024)
	go func() {
		for i := 0; i < per*(count+1); i++ {
			c <- i
		}
	}()
	expected := 0
	read := func(n int) {
		for i := 0; i < n; i++ {
			if x := <-c; x != expected {
				fail("buffer: read %d, expected %d", x, expected)
			}
			expected++
		}
	}
	read(per)
	var s samples
	for k := 0; k < count; k++ {
		start := time.Now()
		read(per)
		s.add(start, per)
	}
	s.print()
}

// n goroutines write to one unbuffered channel, and one reads from it.
func contention(n, count, per int) {
	c := make(chan int)
	for i := 0; i < n; i++ {
		go func() {
			for {
				c <- i
			}
		}()
	}
	for i := 0; i < per; i++ {
		<-c
	}
	var s samples
	for k := 0; k < count; k++ {
		start := time.Now()
		for i := 0; i < per; i++ {
			<-c
		}
		s.add(start, per)
	}
	s.print()
}
