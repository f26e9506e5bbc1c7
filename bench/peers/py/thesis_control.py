"""A peer, the thesis's control: Python worker threads, ZeroMQ PAIR sockets (inproc), and JSON by
jsonplus. The figure is ns for a pair of messages.

thesis_control.py WORKLOAD MESSAGES SAMPLES sends MESSAGES to each of two workers.
"""

import collections
import itertools
import sys
import threading

import jsonplus
import zmq
from thesis_work import WORK, WORKERS, figures

Message = collections.namedtuple("Message", "number")
names = itertools.count()


def worker(address, context, workload, messages):
    work = WORK[workload]
    pair = context.socket(zmq.PAIR)
    pair.connect(address)
    value = 0
    for _ in range(messages):  # the worker speaks first
        pair.send_string(jsonplus.dumps({"value": value}))
        value = work(jsonplus.loads(pair.recv_string()).number)
    pair.send_string(jsonplus.dumps({"value": value}))
    pair.close()


def once(workload, messages):
    contexts = [zmq.Context() for _ in range(WORKERS)]
    pairs, threads, poller = [], [], zmq.Poller()
    for context in contexts:
        address = f"inproc://thesis{next(names)}"
        pair = context.socket(zmq.PAIR)
        pair.bind(address)
        poller.register(pair, zmq.POLLIN)
        pairs.append(pair)
        thread = threading.Thread(target=worker, args=(address, context, workload, messages))
        thread.start()
        threads.append(thread)
    sums, sent, left = [0] * WORKERS, [0] * WORKERS, WORKERS
    while left:
        for pair, _ in poller.poll():
            k = pairs.index(pair)
            sums[k] += jsonplus.loads(pair.recv_string())["value"]
            if sent[k] == messages:
                left -= 1
            else:
                sent[k] += 1
                pair.send_string(jsonplus.dumps(Message(sent[k])))
    for thread in threads:
        thread.join()
    for pair in pairs:
        pair.close()
    for context in contexts:
        context.term()
    return sums


if __name__ == "__main__":
    workload, messages, samples = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    figures(workload, messages, samples, lambda: once(workload, messages))
