package main

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// An echo server: a goroutine for each connection, on one processor. The clients are the program
// BENCH_ECHO_CLIENTS (bench/cpp/echo_clients.cpp), which measures.

func echoes(c net.Conn, all *sync.WaitGroup) {
	defer all.Done()
	defer c.Close()
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		if err != nil {
			return // the clients have ended
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}

func echo(count, per, connections int) {
	door, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fail("echo: %v", err)
	}
	clients := exec.Command(os.Getenv("BENCH_ECHO_CLIENTS"), strconv.Itoa(count), strconv.Itoa(per),
		strconv.Itoa(connections), strconv.Itoa(os.Getpid()),
		strconv.Itoa(door.Addr().(*net.TCPAddr).Port))
	clients.Stdout, clients.Stderr = os.Stdout, os.Stderr
	if err := clients.Start(); err != nil {
		fail("echo: %v", err)
	}
	var all sync.WaitGroup
	for i := 0; i < connections; i++ {
		c, err := door.Accept() // sets TCP_NODELAY
		if err != nil {
			fail("echo: %v", err)
		}
		all.Add(1)
		go echoes(c, &all)
	}
	all.Wait()
	if err := clients.Wait(); err != nil {
		fail("echo: the clients failed: %v", err)
	}
}
