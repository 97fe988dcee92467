//! Endpoints over raw IP, between two network namespaces that are connected by a veth pair. A test
//! that this machine cannot run prints that and passes.

#[path = "../../../socket/tests/raw/namespace.rs"]
mod namespace;

mod ended_processes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use apus::{
    Bytes, CallError, CallOptions, Config, Endpoint, EndpointBuilder, Engine, FailureKind, Profile,
    RawConfig, ReplyError,
};
use apus_proto::{CommandError, Kind};
use namespace::{Namespace, Pair, can_run};

/// The limits of the kernel module: RESEND every 5 ms, timeout after 100 ms
/// (HM `homa_timer.c` `homa_timer_check_rpc`).
fn kernel_limits() -> EndpointBuilder {
    with_timeout(100_000)
}

/// The kernel's profile with a timeout that no busy machine exceeds.
fn patient() -> EndpointBuilder {
    with_timeout(60_000_000)
}

fn with_timeout(usecs: u64) -> EndpointBuilder {
    let config = Config::builder().profile(Profile::Kernel).timeout_usecs(usecs);
    Endpoint::builder().config(config.build().unwrap())
}

/// Makes calls with [`kernel_limits`] until one succeeds. A busy machine may stop the thread that
/// answers RESENDs for longer than the timeout, but not in each of ten calls.
fn call_within_limits(client: &Endpoint, to: SocketAddr, request: &[u8]) -> Bytes {
    for _ in 0..10 {
        match client.call(to, request.to_vec()) {
            Ok(response) => return response,
            Err(CallError::Failed(error))
                if matches!(error.kind, FailureKind::PeerSilent { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the server was silent for the timeout in ten calls");
}

fn bind(host: &Namespace, settings: EndpointBuilder, address: &str) -> Endpoint {
    host.inside(|| settings.raw(RawConfig::default()).bind(address).unwrap())
}

fn client(host: &Namespace, settings: EndpointBuilder) -> Endpoint {
    host.inside(|| settings.raw(RawConfig::default()).client().unwrap())
}

/// Starts a thread that responds to each request with `answer` until the endpoint is shut down.
fn serve(
    host: &Arc<Namespace>,
    endpoint: &Endpoint,
    answer: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static,
) -> JoinHandle<()> {
    let (host, endpoint) = (host.clone(), endpoint.clone());
    thread::spawn(move || {
        host.enter();
        while let Ok(request) = endpoint.recv_request() {
            let response = answer(request.payload().to_vec());
            let _ = request.reply(response);
        }
    })
}

/// Returns bytes that depend on offset and `salt`.
fn message(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ salt) as u8).collect()
}

/// Returns the bytes in reverse order, so that a misplaced byte shows.
fn reversed(mut request: Vec<u8>) -> Vec<u8> {
    request.reverse();
    request
}

/// Calls a server that responds with [`reversed`], and checks the response.
fn check(endpoint: &Endpoint, server: SocketAddr, len: usize, salt: usize) {
    let request = message(len, salt);
    let response =
        endpoint.call(server, request.clone()).unwrap_or_else(|error| panic!("{len} B: {error}"));
    assert!(response == reversed(request), "{len} bytes came back as others");
}

const SIZES: [usize; 12] =
    [1, 100, 1423, 1424, 1425, 2848, 39_999, 40_000, 40_001, 100_000, 500_000, 1_000_000];

#[test]
fn messages_of_all_sizes_go_both_ways_and_in_both_families() {
    if !can_run("messages_of_all_sizes_go_both_ways_and_in_both_families") {
        return;
    }
    let pair = Arc::new(Pair::new());
    for (address, here) in [("10.9.0.2:4000", "0.0.0.0:0"), ("[fd09::2]:4000", "[::]:0")] {
        let server = bind(&pair.right, Endpoint::builder(), address);
        let serving = serve(&pair.right, &server, reversed);
        pair.left.enter();
        let raw = RawConfig::bound_to(here.parse().unwrap());
        let client = Endpoint::builder().raw(raw).client().unwrap();
        assert!(!client.has_local_path());
        for (salt, len) in SIZES.into_iter().enumerate() {
            check(&client, server.local_addr(), len, salt);
        }
        let error = client.call(server.local_addr(), vec![0; 1_000_001]).unwrap_err();
        assert!(error.to_string().contains("1000000"), "the kernel's limit: {error}");
        server.shutdown();
        serving.join().unwrap();
    }
}

/// RPC-1: the module's messages have at least one byte, in both directions, and the errors state
/// that.
#[test]
fn empty_messages_are_rejected_in_both_directions() {
    if !can_run("empty_messages_are_rejected_in_both_directions") {
        return;
    }
    let pair = Pair::new();
    let server = bind(&pair.right, patient(), "10.9.0.2:4000");
    let client = client(&pair.left, patient());
    let to = server.local_addr();
    let rejected = client.call(to, "");
    assert!(
        matches!(rejected, Err(CallError::Rejected(CommandError::EmptyMessage))),
        "{rejected:?}"
    );
    let text = rejected.unwrap_err().to_string();
    assert!(text.contains("kernel profile") && text.contains("at least one byte"), "{text}");

    let call = client.send(to, "x", 0).unwrap();
    let rejected = server.recv_request().unwrap().reply("");
    assert!(
        matches!(rejected, Err(ReplyError::Rejected(CommandError::EmptyMessage))),
        "{rejected:?}"
    );
    // The profile has no word for a request that its application drops.
    assert!(client.cancel(call));
    client.send(to, "x", 1).unwrap();
    server.recv_request().unwrap().reply("a byte").unwrap();
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "a byte");
}

#[test]
fn twenty_clients_at_a_time_through_a_network_that_loses_one_packet_in_a_hundred() {
    let name = "twenty_clients_at_a_time_through_a_network_that_loses_one_packet_in_a_hundred";
    if !can_run(name) {
        return;
    }
    if !namespace::works("nft add table inet lossy") {
        eprintln!("SKIPPED: {name}: it needs nftables, which loses the packets");
        return;
    }
    let pair = Arc::new(Pair::new());
    for host in [&pair.left, &pair.right] {
        host.run(
            "nft add table inet lossy
             nft add chain inet lossy input '{ type filter hook input priority 0; }'
             nft add rule inet lossy input meta l4proto 146 numgen random mod 100 '<' 1 counter drop",
        );
    }
    let server = bind(&pair.right, Endpoint::builder(), "10.9.0.2:4000");
    let servers = [(); 2].map(|()| serve(&pair.right, &server, reversed));
    let clients: Vec<_> = (0..20)
        .map(|number| {
            let (pair, server) = (pair.clone(), server.local_addr());
            thread::spawn(move || {
                pair.left.enter();
                let client = Endpoint::builder().raw(RawConfig::default()).client().unwrap();
                for round in 0..10 {
                    let len = SIZES[(number + round) % (SIZES.len() - 2)];
                    check(&client, server, len, number * 100 + round);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let lost = pair.right.output_of("nft list table inet lossy");
    assert!(!lost.contains("packets 0 "), "nothing was lost: {lost}");
    server.shutdown();
    servers.into_iter().for_each(|serving| serving.join().unwrap());
}

/// Rules for peers, item 13: a client with the kernel's limits must be answered while its request
/// is executed.
#[test]
fn a_server_that_computes_for_a_second_keeps_a_client_with_the_kernels_limits() {
    if !can_run("a_server_that_computes_for_a_second_keeps_a_client_with_the_kernels_limits") {
        return;
    }
    let pair = Arc::new(Pair::new());
    for (port, engine) in [(4000, Engine::Waiters), (4001, Engine::Dedicated { cpu: None })] {
        let settings = Endpoint::builder().engine(engine);
        let server = bind(&pair.right, settings, &format!("10.9.0.2:{port}"));
        let serving = serve(&pair.right, &server, |request| {
            // The thread computes: another thread must answer RESENDs in the meantime.
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(1) {
                std::hint::spin_loop();
            }
            request
        });
        let client = client(&pair.left, kernel_limits());
        let began = Instant::now();
        let response = call_within_limits(&client, server.local_addr(), b"think");
        assert_eq!(response, "think", "{engine:?}");
        assert!(began.elapsed() >= Duration::from_secs(1));
        // The client sent a RESEND every 5 ms.
        let busy = server.metrics().protocol.sent(Kind::Busy);
        assert!(busy >= 10, "{engine:?}: {busy} times");
        server.shutdown();
        serving.join().unwrap();
    }
}

#[test]
fn pauses_change_nothing() {
    if !can_run("pauses_change_nothing") {
        return;
    }
    let pair = Arc::new(Pair::new());
    let server = bind(&pair.right, Endpoint::builder(), "10.9.0.2:4000");
    let serving = serve(&pair.right, &server, reversed);
    pair.left.enter();
    let client = kernel_limits().raw(RawConfig::default()).client().unwrap();
    for round in 0..3 {
        let request = message(50_000, round);
        let response = call_within_limits(&client, server.local_addr(), &request);
        assert!(response == reversed(request), "round {round}");
        // A second without packets.
        assert!(client.recv_completion_timeout(Duration::from_secs(1)).unwrap().is_none());
    }
    server.shutdown();
    serving.join().unwrap();
}

#[test]
fn a_host_without_the_protocol_ends_calls_to_it_at_once_and_others_go_on() {
    if !can_run("a_host_without_the_protocol_ends_calls_to_it_at_once_and_others_go_on") {
        return;
    }
    let pair = Arc::new(Pair::new());
    let client = client(&pair.left, Endpoint::builder());
    let error = client.call("10.9.0.2:4000".parse().unwrap(), "x").unwrap_err();
    let CallError::Failed(error) = error else { panic!("{error}") };
    assert_eq!(error.kind, FailureKind::ProtocolUnreachable);
    let server = bind(&pair.right, Endpoint::builder(), "10.9.0.2:4000");
    let serving = serve(&pair.right, &server, reversed);
    check(&client, server.local_addr(), 5000, 1);
    server.shutdown();
    serving.join().unwrap();
}

/// "Fragmentation needed" shrinks segments instead of failing the call.
#[test]
fn a_path_with_a_smaller_mtu_than_the_interface_delivers() {
    if !can_run("a_path_with_a_smaller_mtu_than_the_interface_delivers") {
        return;
    }
    let pair = Arc::new(Pair::new());
    // The address behind the router is on a link with a smaller MTU.
    let far = Arc::new(Namespace::new());
    pair.right.run(&format!(
        "ip link add narrow type veth peer name narrow netns {}
         sysctl -qw net.ipv4.ip_forward=1
         ip addr add 10.8.0.1/24 dev narrow
         ip link set narrow mtu 1400 up",
        far.pid()
    ));
    far.run(
        "ip addr add 10.8.0.2/24 dev narrow
         ip link set narrow mtu 1400 up
         ip route add default via 10.8.0.1",
    );
    pair.left.run("ip route add default via 10.9.0.2");
    let server = bind(&far, Endpoint::builder(), "10.8.0.2:4000");
    let serving = serve(&far, &server, reversed);
    pair.left.enter();
    let client = Endpoint::builder().raw(RawConfig::default()).client().unwrap();
    let options = CallOptions::new().timeout(Duration::from_secs(60));
    for len in [3_000, 300_000] {
        let request = message(len, len);
        let response = client.call_with(server.local_addr(), request.clone(), options).unwrap();
        assert!(response == reversed(request));
    }
    assert!(client.metrics().engine.reports > 0, "the path was as wide as the interface");
    server.shutdown();
    serving.join().unwrap();
}

/// Endpoints of one host call the same server at the same time: it distinguishes their calls by
/// their ids alone.
#[test]
fn endpoints_of_one_host_are_distinguished_by_their_ids() {
    if !can_run("endpoints_of_one_host_are_distinguished_by_their_ids") {
        return;
    }
    let pair = Arc::new(Pair::new());
    let server = bind(&pair.right, Endpoint::builder(), "10.9.0.2:4000");
    let serving = serve(&pair.right, &server, reversed);
    let clients = [(); 4].map(|()| client(&pair.left, Endpoint::builder()));
    for round in 0..50 {
        for (number, client) in clients.iter().enumerate() {
            client.send(server.local_addr(), message(300, number), round).unwrap();
        }
        for (number, client) in clients.iter().enumerate() {
            let ended = client.recv_completion().unwrap();
            assert!(ended.result.unwrap() == reversed(message(300, number)));
        }
    }
    server.shutdown();
    serving.join().unwrap();
}
