package main

import (
	"sync"
	"time"
)

// A farm: one goroutine sends jobs on one channel, at which several receive; a pipeline; a tree of
// goroutines. The same work as in cpp/farm.cpp.

func jobWork(job, steps int) uint64 {
	x := uint64(job) + 1
	for i := 0; i < steps; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func farmOnce(workers, steps, slots, jobs int) uint64 {
	c, results := make(chan int, slots), make(chan uint64)
	go func() {
		for i := 0; i < jobs; i++ {
			c <- i
		}
		close(c)
	}()
	for w := 0; w < workers; w++ {
		go func() {
			var sum uint64
			for job := range c {
				sum += jobWork(job, steps)
			}
			results <- sum
		}()
	}
	var sum uint64
	for w := 0; w < workers; w++ {
		sum += <-results
	}
	return sum
}

func measured(count, operations int, once func()) {
	once() // warms up
	var s samples
	for k := 0; k < count; k++ {
		start := time.Now()
		once()
		s.add(start, operations)
	}
	s.print()
}

func farm(workers, steps, slots, count, jobs int) {
	var right uint64
	for i := 0; i < jobs; i++ {
		right += jobWork(i, steps)
	}
	measured(count, jobs, func() {
		if farmOnce(workers, steps, slots, jobs) != right {
			fail("farm: a wrong sum")
		}
	})
}

func pipeline(stages, count, per int) {
	measured(count, per*(stages+1), func() {
		first := make(chan int)
		in := first
		for i := 0; i < stages; i++ {
			from, to := in, make(chan int)
			go func() {
				for v := range from {
					to <- v + 1
				}
				close(to)
			}()
			in = to
		}
		go func() {
			for i := 0; i < per; i++ {
				first <- i
			}
			close(first)
		}()
		n := 0
		for v := range in {
			if v != stages+n {
				fail("pipeline: read %d, expected %d", v, stages+n)
			}
			n++
		}
		if n != per {
			fail("pipeline: a number is missing")
		}
	})
}

func treeOf(depth int) int {
	if depth == 0 {
		return 1
	}
	var left, right int
	var both sync.WaitGroup
	both.Add(2)
	go func() { left = treeOf(depth - 1); both.Done() }()
	go func() { right = treeOf(depth - 1); both.Done() }()
	both.Wait()
	return left + right + 1
}

func tree(depth, count int) {
	all := 2<<depth - 1
	measured(count, all, func() {
		if treeOf(depth) != all {
			fail("tree: a process is missing")
		}
	})
}
