//! Many small calls between two endpoints of this host, over UDP sockets or through shared memory,
//! to be counted.
//!
//! One thread is client and server in turn, so that no instruction is spent on waiting. Two runs of
//! `valgrind --tool=callgrind` with different numbers of rounds have a difference in instructions;
//! divided by the difference of their exchanges it is what an exchange costs in both endpoints
//! together, 120 of it in this file. Valgrind's processes crash in `rustix` unless
//! `prctl(PR_GET_AUXV)` fails there, for example by a seccomp filter.
//!
//! ```text
//! cargo bench -p apus --bench exchange -- 1000           # rounds of 64 calls of 100 bytes
//! cargo bench -p apus --bench exchange -- 1000 many off  # without traces; or `sampled=1024`, `all`
//! ```
//!
//! It prints the engine's counters of both endpoints, and the counters of their drivers for each
//! exchange: packets, datagrams and system calls. Words after the number of rounds, in any order:
//!
//! - `many`: calls and replies are sent together (`send_many`, `reply_many`);
//! - `threads`: the server has a separate thread and both spin, as in `apus-lab bench rate`;
//! - `local`: through shared memory;
//! - `one`: one call is outstanding, not 64, and nothing is corked;
//! - anything else is the sampling of traces.

use apus::{
    Bytes, CallOptions, Completion, Config, Endpoint, EndpointBuilder, OutgoingCall, Payload,
    PollMode, Request,
};
use std::net::SocketAddr;
use std::time::Duration;

const SIZE: usize = 100;
const OUTSTANDING: usize = 64;

fn endpoint(serve: bool, local: bool) -> Endpoint {
    // Under valgrind packets take longer than the usual intervals: many would be requested again.
    let config = Config::builder().timeout_usecs(20_000_000);
    let config = config.resend_usecs(10_000_000).resend_interval_usecs(10_000_000);
    let builder = EndpointBuilder::default().config(config.build().unwrap()).serve(serve);
    let builder = builder.poll_mode(PollMode::Spin).local(local).call_timeout(Duration::MAX);
    builder.bind("127.0.0.1:0").unwrap()
}

/// Calls that are sent, and completions that are received.
struct Client {
    endpoint: Endpoint,
    to: SocketAddr,
    request: Bytes,
    completions: Vec<Completion>,
    /// Calls that leave together; `None` if each is sent separately.
    calls: Option<Vec<OutgoingCall>>,
    /// Whether one call is outstanding, which leaves alone.
    one: bool,
}

impl Client {
    fn send(&self, cookie: u64) {
        self.endpoint.send(self.to, self.request.clone(), cookie).unwrap();
    }

    /// Follows each completion that is there with a call. Returns their number.
    fn follow(&mut self) -> usize {
        let _together = (!self.one).then(|| self.endpoint.cork());
        let count = self.endpoint.recv_completions(&mut self.completions, OUTSTANDING).unwrap();
        let mut completions = std::mem::take(&mut self.completions);
        for completion in completions.drain(..) {
            assert_eq!(completion.result.unwrap().len(), SIZE);
            let cookie = completion.cookie;
            match &mut self.calls {
                Some(calls) => {
                    let request = self.request.clone().into();
                    calls.push(OutgoingCall { to: self.to, request, cookie });
                }
                None => self.send(cookie),
            }
        }
        if let Some(calls) = &mut self.calls {
            self.endpoint.send_many(calls, CallOptions::new()).unwrap();
        }
        self.completions = completions;
        count
    }
}

/// Echoes the available requests, together if there is a place for `replies`. Returns `false` if
/// the endpoint is closed: the client has its counts.
fn echo(
    server: &Endpoint,
    requests: &mut Vec<Request>,
    replies: Option<&mut Vec<(Request, Payload)>>,
    one: bool,
) -> bool {
    let _together = (!one).then(|| server.cork());
    let open = server.recv_requests(requests, OUTSTANDING).is_ok();
    let answers = requests.drain(..).map(|mut request| {
        let payload = request.take_payload();
        (request, payload)
    });
    match replies {
        Some(replies) => {
            replies.extend(answers.map(|(request, payload)| (request, payload.into())));
            open & server.reply_many(replies).is_ok()
        }
        None => {
            answers.fold(open, |open, (request, payload)| open & request.reply(payload).is_ok())
        }
    }
}

fn print(side: &str, endpoint: &Endpoint, exchanges: usize) {
    let metrics = endpoint.metrics();
    println!("{side} {:?}", metrics.engine);
    for (name, value) in &metrics.driver {
        println!("{side} {name} {:.4}", *value as f64 / exchanges as f64);
    }
}

/// Makes calls until one uses shared memory, which the endpoints set up during the first ones.
fn agree_on_memory(client: &mut Client, server: &Endpoint) {
    while client.endpoint.metrics().engine.local_calls == 0 {
        client.send(0);
        let mut request = server.recv_request().unwrap();
        let payload = request.take_payload();
        request.reply(payload).unwrap();
        client.endpoint.recv_completion().unwrap().result.unwrap();
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let rounds: usize = arguments.next().map_or(1_000, |rounds| rounds.parse().unwrap());
    let mut words: Vec<String> = arguments.collect();
    let [threads, many, local, one] = ["threads", "many", "local", "one"].map(|name| {
        let at = words.iter().position(|word| word == name);
        at.map(|at| words.remove(at)).is_some()
    });
    if let Some(sampling) = words.first() {
        apus::trace::set_sampling(sampling.parse().unwrap());
    }
    let outstanding = if one { 1 } else { OUTSTANDING };
    let exchanges = rounds * outstanding;
    let server = endpoint(true, local);
    let (to, request) = (server.local_addr(), Bytes::from(vec![7; SIZE]));
    let (completions, calls) = (Vec::new(), many.then(Vec::new));
    let endpoint = endpoint(false, local);
    let mut client = Client { endpoint, to, request, completions, calls, one };
    if local {
        agree_on_memory(&mut client, &server);
    }
    let mut requests = Vec::with_capacity(OUTSTANDING);
    let mut replies = many.then(Vec::new);
    let together = client.endpoint.cork();
    (0..outstanding as u64).for_each(|cookie| client.send(cookie));
    drop(together);
    let mut left = exchanges;
    if threads {
        std::thread::scope(|scope| {
            scope.spawn(|| while echo(&server, &mut requests, replies.as_mut(), one) {});
            while left > 0 {
                left = left.saturating_sub(client.follow());
            }
            server.shutdown();
        });
    } else {
        while left > 0 {
            assert!(echo(&server, &mut requests, replies.as_mut(), one));
            left = left.saturating_sub(client.follow());
        }
    }
    print("client", &client.endpoint, exchanges);
    print("server", &server, exchanges);
}
