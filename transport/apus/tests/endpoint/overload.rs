//! Overload: refusals, progress of accepted requests, and the share of the core.

use crate::fixtures::patient;
use crate::{ShutDown, bytes, roomy_pair};
use apus::{
    CallError, CallOptions, Config, Endpoint, EndpointBuilder, Engine, FailureKind, PollMode,
    Refusal, RpcError,
};
use apus_driver::Driver;
use apus_driver::loopback::LoopbackNetwork;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Outstanding requests: several times as many as may wait before an [`impatient`] server refuses.
pub(crate) const UNDER_WAY: u64 = 2_000;

/// Endpoints that refuse when requests wait for 10 ms, if 320 wait.
pub(crate) fn impatient() -> EndpointBuilder {
    patient().poll_mode(PollMode::Block).max_queueing(Duration::from_micros(50))
}

/// Two endpoints on a network with room for all of these packets: the answer to a RESEND tells a
/// client that lost its refusal that the server has finished the request, but not why.
///
/// No call times out: on a busy machine a server may only answer RESENDs for longer than a second.
pub(crate) fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let patient = Config::builder().timeout_usecs(3_600_000_000).build().unwrap();
    // A client that the system stops for a while gets many RESENDs during that time.
    roomy_pair(&builder.clone().config(patient), 400 * UNDER_WAY as usize)
}

fn is_overloaded(error: &RpcError) -> bool {
    matches!(error.kind, FailureKind::Refused(Refusal::Overloaded))
}

/// Serves one request after the other, each with 50 µs of work. Returns their number.
fn serve_slowly(server: &Endpoint) -> u64 {
    let mut served = 0;
    while let Ok(mut request) = server.recv_request() {
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
        let payload = request.take_payload();
        request.reply(payload).unwrap();
        served += 1;
    }
    served
}

/// Keeps requests outstanding until one is refused or `most` are sent, then waits for all
/// completions. Returns the numbers of answered and of refused requests.
fn press(client: &Endpoint, to: SocketAddr, most: u64) -> (u64, u64) {
    let (mut sent, mut ended, mut refused) = (0, 0, 0);
    while ended < sent || sent == 0 || (refused == 0 && sent < most) {
        while refused == 0 && sent < most && sent - ended < UNDER_WAY {
            client.send(to, bytes(sent as usize % 100, 100), sent).unwrap();
            sent += 1;
        }
        match client.recv_completion().unwrap().result {
            Ok(_) => {}
            Err(error) => {
                assert!(is_overloaded(&error), "{error}");
                refused += 1;
            }
        }
        ended += 1;
    }
    (sent - refused, refused)
}

/// Requirement CAP-16, and that every accepted request is answered.
#[test]
fn far_too_many_requests_are_refused_and_those_accepted_are_all_answered() {
    for engine in [Engine::Waiters, Engine::Dedicated { cpu: None }] {
        let (client, server) = pair(&impatient().engine(engine));
        std::thread::scope(|scope| {
            let _ends = ShutDown(&[&client, &server]);
            let serving = scope.spawn(|| serve_slowly(&server));
            let (answered, refused) = press(&client, server.local_addr(), u64::MAX);
            assert!(refused > 0);
            // The server recovers automatically.
            while let Err(error) = client.call(server.local_addr(), "again") {
                assert!(
                    matches!(&error, CallError::Failed(error) if is_overloaded(error)),
                    "{error}"
                );
            }
            let metrics = server.metrics();
            server.shutdown();
            assert_eq!(serving.join().unwrap(), answered + 1);
            assert!(metrics.engine.feedback_stops > 0, "{metrics:?}");
            // Replies are held back only for threads that poll from time to time; a dedicated
            // engine polls all the time.
            if let Engine::Dedicated { .. } = engine {
                assert_eq!(metrics.engine.held_replies, 0, "{metrics:?}");
            }
            assert_eq!(metrics.engine.spurious_wakeups, 0);
        });
    }
}

/// An accepted reply leaves before the shutdown, after which the protocol discards unsent messages.
#[test]
fn a_reply_under_a_cork_leaves_before_its_endpoint_is_shut_down() {
    let (client, server) = pair(&patient());
    client.send(server.local_addr(), "hello", 1).unwrap();
    let request = server.recv_request().unwrap();
    let cork = server.cork();
    request.reply("world").unwrap();
    server.shutdown();
    drop(cork);
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "world");
}

/// A thread that always finds a request polls the network from time to time, so that the background
/// poller does not take over. It must serve timers as well, although no packet arrives.
#[test]
fn timers_are_served_while_requests_wait() {
    const REQUESTS: u64 = 10;
    let network = LoopbackNetwork::new();
    let on = || patient().poll_mode(PollMode::Block).with_driver(Box::new(network.host())).unwrap();
    let (client, server, silent) = (on(), on(), network.host());
    let cork = client.cork();
    for number in 0..REQUESTS {
        client.send(server.local_addr(), "hello", number).unwrap();
    }
    drop(cork);
    let mut requests = Vec::new();
    for _ in 0..REQUESTS {
        requests.push(server.recv_request().unwrap());
        // A backend that does not respond.
        let options = CallOptions::new().timeout(Duration::from_micros(300));
        server.send_with(silent.local_addr(), "and you?", 0, options).unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
    }
    assert!(server.metrics().protocol.live.client_rpcs < REQUESTS, "none is too late");
}

#[test]
fn without_a_queueing_limit_requests_wait_and_are_not_refused() {
    let (client, server) = pair(&patient().max_queueing(Duration::MAX));
    std::thread::scope(|scope| {
        let _ends = ShutDown(&[&client, &server]);
        let serving = scope.spawn(|| serve_slowly(&server));
        assert_eq!(press(&client, server.local_addr(), 4_000), (4_000, 0));
        server.shutdown();
        assert_eq!(serving.join().unwrap(), 4_000);
    });
}

/// A dedicated engine that spins shares its core with a thread that computes.
#[test]
fn an_engine_with_a_share_leaves_its_core_to_other_threads() {
    let cpu = first_cpu();
    let settings = patient()
        .poll_mode(PollMode::Spin)
        .engine(Engine::Dedicated { cpu: Some(cpu) })
        .core_share(20);
    let server = settings.bind("127.0.0.1:0").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpu);
            while !done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        while server.metrics().engine.rests == 0 {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// The first CPU that this process may use.
fn first_cpu() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap()
}

fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}
