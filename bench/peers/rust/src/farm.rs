//! Networks on tokio's multi-thread runtime with two workers, over kanal's channels: a farm, a
//! pipeline, a tree of tasks. The same work as in cpp/farm.cpp.

use crate::{fail, Sampler};
use std::future::Future;
use std::pin::Pin;

fn work(job: i64, steps: i64) -> u64 {
    let mut x = job as u64 + 1;
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

fn measured<F: Future<Output = bool>>(samples: i64, operations: f64, once: impl Fn() -> F) -> String {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut s = Sampler::new();
    for k in 0..=samples {
        s.begin();
        if !runtime.block_on(once()) {
            fail("a wrong result");
        }
        if k > 0 {
            s.end(operations); // stretch 0 warms up
        }
    }
    s.line
}

async fn farm_once(workers: i64, steps: i64, slots: i64, jobs: i64) -> u64 {
    let (out, input) = kanal::bounded_async::<i64>(slots as usize);
    tokio::spawn(async move {
        for i in 0..jobs {
            out.send(i).await.unwrap();
        }
    });
    let mut all = Vec::new();
    for _ in 0..workers {
        let input = input.clone();
        all.push(tokio::spawn(async move {
            let mut sum = 0u64;
            while let Ok(job) = input.recv().await {
                sum = sum.wrapping_add(work(job, steps));
            }
            sum
        }));
    }
    let mut sum = 0u64;
    for one in all {
        sum = sum.wrapping_add(one.await.unwrap());
    }
    sum
}

pub fn farm(workers: i64, steps: i64, slots: i64, samples: i64, jobs: i64) -> String {
    let right = (0..jobs).fold(0u64, |sum, i| sum.wrapping_add(work(i, steps)));
    measured(samples, jobs as f64, move || async move {
        let farm = farm_once(workers, steps, slots, jobs);
        tokio::spawn(farm).await.unwrap() == right
    })
}

async fn pipeline_once(stages: i64, numbers: i64) -> bool {
    let (first, mut input) = kanal::bounded_async::<i64>(0);
    for _ in 0..stages {
        let (out, next) = kanal::bounded_async::<i64>(0);
        let from = std::mem::replace(&mut input, next);
        tokio::spawn(async move {
            while let Ok(v) = from.recv().await {
                out.send(v + 1).await.unwrap();
            }
        });
    }
    tokio::spawn(async move {
        for i in 0..numbers {
            first.send(i).await.unwrap();
        }
    });
    let mut n = 0;
    while let Ok(v) = input.recv().await {
        if v != stages + n {
            return false;
        }
        n += 1;
    }
    n == numbers
}

pub fn pipeline(stages: i64, samples: i64, numbers: i64) -> String {
    measured(samples, (numbers * (stages + 1)) as f64, move || async move {
        tokio::spawn(pipeline_once(stages, numbers)).await.unwrap()
    })
}

fn tree_of(depth: i64) -> Pin<Box<dyn Future<Output = i64> + Send>> {
    Box::pin(async move {
        if depth == 0 {
            return 1;
        }
        let left = tokio::spawn(tree_of(depth - 1));
        let right = tokio::spawn(tree_of(depth - 1));
        left.await.unwrap() + right.await.unwrap() + 1
    })
}

pub fn tree(depth: i64, samples: i64) -> String {
    let all = (2i64 << depth) - 1;
    measured(samples, all as f64, move || async move {
        tokio::spawn(tree_of(depth)).await.unwrap() == all
    })
}
