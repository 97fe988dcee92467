//! What do time traces cost messages?
//!
//! `cargo bench -p apus --bench tracing` prints how many RPCs a second there are with each setting, as a share of those
//! without traces. `apus bench rate` answers that, too, with processes that live for a second each; two of them differ by
//! 4 % for no reason. Here the settings take turns of 10 ms in one pair of endpoints, 400 times, which leaves half a per
//! cent: enough to see one.

use apus::trace::{self, Sampling};
use apus::{Bytes, Completion, Endpoint, EndpointBuilder, PollMode};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const ROUNDS: usize = 400;
const TURN: Duration = Duration::from_millis(10);
/// After a setting has changed: both ends know of it.
const BEFORE: Duration = Duration::from_millis(1);
const SIZE: usize = 100;
/// The first one is what the others are compared with; `sampled=4000000000` is passes of the loop and no RPC.
const SETTINGS: [&str; 6] =
    ["off", "sampled=4000000000", "sampled=1024", "sampled=256", "sampled=64", "all"];

/// The first two cores that the process may use.
fn cores() -> [usize; 2] {
    let allowed = sched_getaffinity(None).unwrap();
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    [cores.next().unwrap(), cores.next().expect("two cores, one for each end")]
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
    let _together = server.cork();
    let mut requests = Vec::new();
    while server.recv_requests(&mut requests, 64).is_ok() {
        for mut request in requests.drain(..) {
            let payload = request.take_payload();
            let _ = request.reply(payload);
        }
    }
}

/// Ends the server, also if the client fails.
struct ShutDown<'a>(&'a Endpoint);

impl Drop for ShutDown<'_> {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

/// Keeps calls under way, and counts those that end.
struct Client<'a> {
    endpoint: &'a Endpoint,
    server: SocketAddr,
    request: Bytes,
    ends: Vec<Completion>,
}

impl Client<'_> {
    fn send(&self) {
        self.endpoint.send(self.server, self.request.clone(), 0).unwrap();
    }

    /// Calls that have ended in this time, in thousands a second.
    fn rate(&mut self, time: Duration) -> f64 {
        let begin = Instant::now();
        let mut done = 0;
        // Its memory is used again.
        let mut ends = std::mem::take(&mut self.ends);
        loop {
            self.endpoint.recv_completions(&mut ends, 64).unwrap();
            for end in ends.drain(..) {
                assert_eq!(end.result.unwrap().len(), SIZE);
                done += 1;
                self.send();
            }
            let took = begin.elapsed();
            if took >= time {
                self.ends = ends;
                return f64::from(done) / took.as_secs_f64() / 1e3;
            }
        }
    }
}

/// The median, and an interval that holds the true one in 95 of 100 cases (order statistics).
fn median(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let (middle, off) = (values.len() / 2, (0.98 * (values.len() as f64).sqrt()) as usize);
    [values[middle], values[middle - off], values[middle + off]]
}

fn measure(outstanding: usize, [near, far]: [usize; 2]) {
    let server = endpoint();
    let client = endpoint();
    std::thread::scope(|scope| {
        let _end = ShutDown(&server);
        scope.spawn(|| {
            pin(far);
            serve(&server);
        });
        pin(near);
        let _together = client.cork();
        let mut client = Client {
            endpoint: &client,
            server: server.local_addr(),
            request: vec![7; SIZE].into(),
            ends: Vec::new(),
        };
        (0..outstanding).for_each(|_| client.send());
        client.rate(Duration::from_millis(300));
        let mut rates = SETTINGS.map(|_| Vec::new());
        for round in 0..ROUNDS {
            for turn in 0..SETTINGS.len() {
                let index = (round + turn) % SETTINGS.len();
                let setting: Sampling = SETTINGS[index].parse().unwrap();
                trace::set_sampling(setting);
                client.rate(BEFORE);
                rates[index].push(client.rate(TURN));
            }
        }
        println!(
            "\n{outstanding} under way        thousand a second   beside off (95 % of medians)"
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
