//! The cost of time traces for small messages.
//!
//! `cargo bench -p apus --bench tracing` prints the RPCs per second for each sampling setting,
//! relative to no tracing. `apus-lab bench rate` measures the same with processes that live for a
//! second each, whose results vary by 4 %. Here the settings alternate every 10 ms in one pair of
//! endpoints, 400 times, which resolves differences of half a per cent.

use apus::trace::{self, Sampling};
use apus::{Bytes, Completion, Endpoint, EndpointBuilder, PollMode};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const ROUNDS: usize = 400;
const SLICE: Duration = Duration::from_millis(10);
/// Time after a change of the setting that is not measured.
const WARM_UP: Duration = Duration::from_millis(1);
const SIZE: usize = 100;
/// The first one is the baseline. `sampled=4000000000` records passes of the loop and no RPC.
const SETTINGS: [&str; 6] =
    ["off", "sampled=4000000000", "sampled=1024", "sampled=256", "sampled=64", "all"];

/// Returns the first two cores that the process may use.
fn cores() -> [usize; 2] {
    let allowed = sched_getaffinity(None).unwrap();
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    [cores.next().unwrap(), cores.next().expect("two cores, one for each side")]
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).unwrap();
}

fn endpoint() -> Endpoint {
    EndpointBuilder::default().poll_mode(PollMode::Spin).local(false).bind("127.0.0.1:0").unwrap()
}

fn serve(server: &Endpoint) {
    let _cork = server.cork();
    let mut requests = Vec::new();
    while server.recv_requests(&mut requests, 64).is_ok() {
        for mut request in requests.drain(..) {
            let payload = request.take_payload();
            let _ = request.reply(payload);
        }
    }
}

/// Shuts the server down, also if the client fails.
struct ShutDown<'a>(&'a Endpoint);

impl Drop for ShutDown<'_> {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

/// Keeps calls outstanding, and counts completions.
struct Client<'a> {
    endpoint: &'a Endpoint,
    server: SocketAddr,
    request: Bytes,
    completions: Vec<Completion>,
}

impl Client<'_> {
    fn send(&self) {
        self.endpoint.send(self.server, self.request.clone(), 0).unwrap();
    }

    /// Returns the rate of completions within `time`, in thousands per second.
    fn rate(&mut self, time: Duration) -> f64 {
        let begin = Instant::now();
        let mut done = 0;
        // Taken and put back, so that its memory is reused.
        let mut completions = std::mem::take(&mut self.completions);
        loop {
            self.endpoint.recv_completions(&mut completions, 64).unwrap();
            for completion in completions.drain(..) {
                assert_eq!(completion.result.unwrap().len(), SIZE);
                done += 1;
                self.send();
            }
            let took = begin.elapsed();
            if took >= time {
                self.completions = completions;
                return f64::from(done) / took.as_secs_f64() / 1e3;
            }
        }
    }
}

/// Returns the median and its 95 % confidence interval (order statistics).
fn median(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let (middle, off) = (values.len() / 2, (0.98 * (values.len() as f64).sqrt()) as usize);
    [values[middle], values[middle - off], values[middle + off]]
}

fn measure(outstanding: usize, [near, far]: [usize; 2]) {
    let server = endpoint();
    let client = endpoint();
    std::thread::scope(|scope| {
        let _shutdown = ShutDown(&server);
        scope.spawn(|| {
            pin(far);
            serve(&server);
        });
        pin(near);
        let _cork = client.cork();
        let mut client = Client {
            endpoint: &client,
            server: server.local_addr(),
            request: vec![7; SIZE].into(),
            completions: Vec::new(),
        };
        (0..outstanding).for_each(|_| client.send());
        client.rate(Duration::from_millis(300));
        let mut rates = SETTINGS.map(|_| Vec::new());
        for round in 0..ROUNDS {
            for turn in 0..SETTINGS.len() {
                let index = (round + turn) % SETTINGS.len();
                let setting: Sampling = SETTINGS[index].parse().unwrap();
                trace::set_sampling(setting);
                client.rate(WARM_UP);
                rates[index].push(client.rate(SLICE));
            }
        }
        println!(
            "\n{outstanding:<4} outstanding   thousand per second   relative to off (95 % interval)"
        );
        for (setting, own) in SETTINGS.iter().zip(&rates) {
            let quotients = own.iter().zip(&rates[0]).map(|(a, b)| a / b).collect();
            let ([rate, ..], [ratio, low, high]) = (median(own.clone()), median(quotients));
            println!("{setting:<20} {rate:>16.1}   {ratio:.4} ({low:.4} to {high:.4})");
        }
    });
}

fn main() {
    let cores = cores();
    measure(64, cores);
    measure(1, cores);
}
