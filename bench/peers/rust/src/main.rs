//! CommsTime over Rust's channels: prefix, sequential delta, successor and consumer in a loop.
//!
//!     rust kanal|crossbeam SAMPLES PER
//!     rust farm WORKERS STEPS SLOTS SAMPLES PER
//!     rust pipeline STAGES SAMPLES PER
//!     rust tree DEPTH SAMPLES
//!
//! kanal: four tasks on tokio's current_thread runtime over bounded_async(0), a rendezvous.
//! crossbeam: four threads over bounded(0).
//! farm, pipeline, tree: farm.rs, on tokio's multi-thread runtime.
//! Prints "ns V V …", ns a communication (a number costs four).

mod farm;

use std::fmt::Write;
use std::time::Instant;

struct Sampler {
    line: String,
    start: Instant,
}

impl Sampler {
    fn new() -> Self {
        Sampler { line: "ns".to_string(), start: Instant::now() }
    }
    fn begin(&mut self) {
        self.start = Instant::now();
    }
    fn end(&mut self, operations: f64) {
        write!(self.line, " {:.3}", self.start.elapsed().as_nanos() as f64 / operations).unwrap();
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1)
}

async fn kanal_consumer(input: kanal::AsyncReceiver<i64>, samples: i64, per: i64) -> String {
    let mut s = Sampler::new();
    let mut expected = 0;
    for k in 0..=samples {
        s.begin();
        for _ in 0..per {
            if input.recv().await != Ok(expected) {
                fail("commstime: read a wrong number");
            }
            expected += 1;
        }
        if k > 0 {
            s.end(4.0 * per as f64); // stretch 0 warms up
        }
    }
    s.line
}

fn with_kanal(samples: i64, per: i64) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let (a_out, a_in) = kanal::bounded_async::<i64>(0);
    let (b_out, b_in) = kanal::bounded_async::<i64>(0);
    let (c_out, c_in) = kanal::bounded_async::<i64>(0);
    let (d_out, d_in) = kanal::bounded_async::<i64>(0);
    local.spawn_local(async move {
        a_out.send(0).await.unwrap();
        while let Ok(x) = c_in.recv().await {
            if a_out.send(x).await.is_err() {
                break;
            }
        }
    });
    local.spawn_local(async move {
        while let Ok(x) = a_in.recv().await {
            if b_out.send(x).await.is_err() || d_out.send(x).await.is_err() {
                break;
            }
        }
    });
    local.spawn_local(async move {
        while let Ok(x) = b_in.recv().await {
            if c_out.send(x + 1).await.is_err() {
                break;
            }
        }
    });
    local.block_on(&runtime, kanal_consumer(d_in, samples, per))
}

fn with_crossbeam(samples: i64, per: i64) -> String {
    use crossbeam_channel::bounded;
    let (a_out, a_in) = bounded::<i64>(0);
    let (b_out, b_in) = bounded::<i64>(0);
    let (c_out, c_in) = bounded::<i64>(0);
    let (d_out, d_in) = bounded::<i64>(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            a_out.send(0).unwrap();
            for x in c_in {
                if a_out.send(x).is_err() {
                    break;
                }
            }
        });
        scope.spawn(move || {
            for x in a_in {
                if b_out.send(x).is_err() || d_out.send(x).is_err() {
                    break;
                }
            }
        });
        scope.spawn(move || {
            for x in b_in {
                if c_out.send(x + 1).is_err() {
                    break;
                }
            }
        });
        let consumer = scope.spawn(move || {
            let mut s = Sampler::new();
            let mut expected = 0;
            for k in 0..=samples {
                s.begin();
                for _ in 0..per {
                    if d_in.recv() != Ok(expected) {
                        fail("commstime: read a wrong number");
                    }
                    expected += 1;
                }
                if k > 0 {
                    s.end(4.0 * per as f64); // stretch 0 warms up
                }
            }
            s.line
        });
        consumer.join().unwrap()
    })
}

fn number(text: &str) -> i64 {
    match text.parse() {
        Ok(n) if n >= 1 => n,
        _ => fail(&format!("'{text}' is not a number of at least 1")),
    }
}

const USAGE: &str = "usage: rust kanal|crossbeam SAMPLES PER | farm WORKERS STEPS SLOTS SAMPLES PER | \
    pipeline STAGES SAMPLES PER | tree DEPTH SAMPLES";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (kind, rest) = words.split_first().unwrap_or_else(|| fail(USAGE));
    // Only the number of slots may be 0.
    let n: Vec<i64> = rest.iter().enumerate().map(|(i, w)| if i == 2 && w == "0" { 0 } else { number(w) }).collect();
    let line = match (kind.as_str(), n.as_slice()) {
        ("kanal", &[samples, per]) => with_kanal(samples, per),
        ("crossbeam", &[samples, per]) => with_crossbeam(samples, per),
        ("farm", &[workers, steps, slots, samples, per]) => farm::farm(workers, steps, slots, samples, per),
        ("pipeline", &[stages, samples, per]) => farm::pipeline(stages, samples, per),
        ("tree", &[depth, samples]) => farm::tree(depth, samples),
        _ => fail(USAGE),
    };
    println!("{line}");
}
