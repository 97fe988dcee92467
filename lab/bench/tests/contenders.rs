//! Scenario: contenders without an experiment. Each keeps its contract, byte for byte, and reports
//! a peer that does not.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use apus::PollMode;
use apus::{Bytes, Endpoint};
use apus_bench::contenders::apus::{BarePair, ReceiveMode};
use apus_bench::contenders::baseline::{CacheLines, SendMode, Tcp, Udp, UdpGso, Unix, UnixKind};
use apus_bench::contenders::contender::Contender;
use apus_local::{Connecting, LocalConfig, PairEvent, ReceiveQuota};
use apus_measure::exchange::{Calls, Exchange, Path};
use apus_measure::plan::{Plan, Replies, Side};
use apus_testbed::Error;
use apus_testbed::process::{Agent, Control, Runner, Spawner, Task};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
};
use serde_json::{Value, json};

const POLLS: [PollMode; 3] =
    [PollMode::Spin, PollMode::Hybrid(Duration::from_micros(1)), PollMode::Block];

/// Returns a plan that counts from the first message on.
fn plan(poll: PollMode) -> Plan {
    Plan {
        raw: false,
        keys: None,
        size: 1000,
        outstanding: 4,
        poll,
        settings: apus::Settings::default(),
        warmup: Duration::ZERO,
        measure: Duration::from_millis(10),
        seed: 1,
    }
}

/// Starts a side in a thread; `details` are the runner's parameters.
fn start(runner: Runner, details: Value) -> Agent {
    let name = "side".to_owned();
    let task = Task { name, core: None, bind: None, job: String::new(), details };
    Spawner::Threads(runner).start(task).unwrap()
}

fn poll_of(task: &Task) -> PollMode {
    serde_json::from_value(task.details["poll"].clone()).unwrap()
}

fn address_of(task: &Task) -> SocketAddr {
    serde_json::from_value(task.details["server"].clone()).unwrap()
}

/// Returns runners for both sides of a contender.
macro_rules! sides {
    ($contender:expr) => {{
        fn serve(task: &Task, control: &mut Control) -> Result<Value, Error> {
            // A server counts until it is stopped, however slow the machine is.
            let plan = Plan { measure: Duration::from_secs(3_600), ..plan(poll_of(task)) };
            Ok(json!($contender.serve(&plan, control)?))
        }
        fn drive(task: &Task, control: &mut Control) -> Result<Value, Error> {
            let measure = Duration::from_millis(task.details["millis"].as_u64().unwrap_or(10));
            let plan = Plan { measure, ..plan(poll_of(task)) };
            Ok(json!($contender.drive(&plan, address_of(task), control)?))
        }
        (serve as Runner, drive as Runner)
    }};
}

/// Runs a client with a dedicated server, and returns both sides. If one of the first `counting`
/// sides has counted no message, the run is repeated with ten times the length: the system may
/// suspend a thread for longer than a short measurement.
fn measure((serve, drive): (Runner, Runner), poll: PollMode, counting: usize) -> [Side; 2] {
    let run = |millis: u64| -> [Side; 2] {
        let mut server = start(serve, json!({"poll": poll}));
        let details = json!({"poll": poll, "server": server.address().unwrap(), "millis": millis});
        let client = start(drive, details).result(Duration::ZERO).unwrap();
        [client, server.stop().unwrap()]
    };
    let counted = |sides: &[Side; 2]| sides[..counting].iter().all(|side| side.bytes > 0);
    let longer = [10, 100, 1_000].into_iter().map(run).find(counted);
    longer.unwrap_or_else(|| run(10_000))
}

const fn apus(calls: Calls, path: Path) -> Exchange {
    Exchange { calls, path }
}

const fn unix(kind: UnixKind, replies: Replies) -> Unix {
    Unix { kind, replies }
}

/// Returns bytes that differ from their neighbours.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 256) as u8).collect()
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(payload);
    frame
}

/// Returns whether a stream echoes messages of all sizes that are written back to back.
fn echoes(mut stream: impl Read, mut writer: impl Write + Send + 'static) -> bool {
    let sent: Vec<u8> =
        [0, 1, 100, 70_000, 3, 500_000].iter().flat_map(|&n| framed(&pattern(n))).collect();
    let copy = sent.clone();
    let writer = thread::spawn(move || writer.write_all(&copy).unwrap());
    let mut received = vec![0; sent.len()];
    stream.read_exact(&mut received).unwrap();
    writer.join().unwrap();
    received == sent
}

#[test]
fn tcp_servers_send_each_message_back() {
    let one = sides!(Tcp { sends: SendMode::One, replies: Replies::Echo });
    let ready = sides!(Tcp { sends: SendMode::Ready, replies: Replies::Echo });
    for (serve, _) in [one, ready] {
        for poll in POLLS {
            let mut server = start(serve, json!({"poll": poll}));
            let stream = TcpStream::connect(server.address().unwrap()).unwrap();
            assert!(echoes(&stream, stream.try_clone().unwrap()), "{poll}");
            drop(stream);
            server.stop::<Side>().unwrap();
        }
    }
}

#[test]
fn a_tcp_server_with_short_replies_answers_each_message_once() {
    let (serve, _) = sides!(Tcp { sends: SendMode::One, replies: Replies::Short });
    let mut server = start(serve, json!({"poll": PollMode::Block}));
    let mut stream = TcpStream::connect(server.address().unwrap()).unwrap();
    for length in [1, 100_000, 3] {
        stream.write_all(&framed(&pattern(length))).unwrap();
        let mut reply = [0; 4 + 8];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..4], [0, 0, 0, 8]);
    }
    drop(stream);
    let side: Side = server.stop().unwrap();
    // The measurement starts with the first message and excludes it.
    assert_eq!((side.messages, side.bytes), (2, 100_003));
}

#[test]
fn udp_servers_send_each_datagram_back() {
    for (serve, _) in [sides!(Udp { connected: false }), sides!(Udp { connected: true })] {
        for poll in POLLS {
            let mut server = start(serve, json!({"poll": poll}));
            let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            client.connect(server.address().unwrap()).unwrap();
            for length in [1, 156, 65_507] {
                let sent = pattern(length);
                client.send(&sent).unwrap();
                let mut received = vec![0; 65_536];
                let count = client.recv(&mut received).unwrap();
                assert!(received[..count] == sent, "{length} bytes, {poll}");
            }
            server.stop::<Side>().unwrap();
        }
    }
}

#[test]
fn apus_servers_send_each_message_back() {
    let contenders = [
        sides!(apus(Calls::OneByOne, Path::Udp)),
        sides!(apus(Calls::Many(Replies::Echo), Path::Udp)),
        sides!(apus(Calls::OneByOne, Path::Local)),
        sides!(apus(Calls::Many(Replies::Echo), Path::Local)),
        sides!(ReceiveMode::SelfPolling),
        sides!(ReceiveMode::Receivers(2)),
    ];
    for (serve, _) in contenders {
        for poll in POLLS {
            let mut server = start(serve, json!({"poll": poll}));
            let address = server.address().unwrap();
            let client = Endpoint::client().unwrap();
            for length in [1, 1400, 1500, 70_000, 500_000] {
                let sent = pattern(length);
                let received = client.call(address, sent.clone()).unwrap();
                assert!(received == sent, "{length} bytes, {poll}");
            }
            server.stop::<Side>().unwrap();
        }
    }
}

/// Returns a connection to the unix socket of a server, as its clients open it.
fn unix_socket(server: SocketAddr, kind: SocketType) -> OwnedFd {
    let name =
        SocketAddrUnix::new_abstract_name(format!("apus-bench/{server}").as_bytes()).unwrap();
    let socket = socket(AddressFamily::UNIX, kind, None).unwrap();
    connect(&socket, &name).unwrap();
    socket
}

#[test]
fn unix_servers_send_each_message_back() {
    let (serve, _) = sides!(unix(UnixKind::Stream, Replies::Echo));
    for poll in POLLS {
        let mut server = start(serve, json!({"poll": poll}));
        let socket = unix_socket(server.address().unwrap(), SocketType::STREAM);
        let stream = UnixStream::from(socket);
        assert!(echoes(&stream, stream.try_clone().unwrap()), "{poll}");
        drop(stream);
        server.stop::<Side>().unwrap();
    }
}

#[test]
fn unix_servers_with_message_boundaries_send_each_packet_back() {
    let (serve, _) = sides!(unix(UnixKind::Seqpacket, Replies::Echo));
    for poll in POLLS {
        let mut server = start(serve, json!({"poll": poll}));
        let socket = unix_socket(server.address().unwrap(), SocketType::SEQPACKET);
        // The longest packet is longer than one receive call on a stream.
        for length in [1, 100, 65_532, 65_536, 200_000, 7] {
            let sent = framed(&pattern(length));
            send(&socket, &sent, SendFlags::empty()).unwrap();
            let mut received = vec![0; 1 << 20];
            let (count, _) = recv(&socket, &mut received[..], RecvFlags::empty()).unwrap();
            assert!(received[..count] == sent, "{length} bytes, {poll}");
        }
        drop(socket);
        server.stop::<Side>().unwrap();
    }
}

#[test]
fn packets_that_do_not_fit_into_a_socket_are_excluded() {
    let large = Plan { size: 60_000_000, ..plan(PollMode::Block) };
    let why = unix(UnixKind::Seqpacket, Replies::Echo).exclusion(&large).unwrap();
    assert!(why.starts_with("60000000 bytes do not fit into its socket's buffer"), "{why}");
    assert_eq!(unix(UnixKind::Stream, Replies::Echo).exclusion(&large), None);
    assert_eq!(unix(UnixKind::Seqpacket, Replies::Echo).exclusion(&plan(PollMode::Block)), None);
}

#[test]
fn a_bare_pair_sends_each_message_back() {
    let (serve, _) = sides!(BarePair { calls: Calls::OneByOne });
    for poll in POLLS {
        let mut server = start(serve, json!({"poll": poll}));
        let name = apus_local::PeerName::of(server.address().unwrap());
        let connecting = Connecting::start(&name, &LocalConfig::default()).unwrap();
        let pair = connecting.finish(Duration::MAX).unwrap();
        for (id, length) in [(5, 1), (6, 1400), (7, 4097), (8, 500_000)] {
            let sent = Bytes::from(pattern(length));
            pair.send(id, std::slice::from_ref(&sent)).unwrap();
            let mut events = Vec::new();
            while events.is_empty() {
                pair.wait(Some(Duration::ZERO), None);
                pair.receive(ReceiveQuota::default(), &mut events).unwrap();
            }
            assert!(
                events == [PairEvent::Response { id, payload: sent }],
                "{length} bytes, {poll}"
            );
        }
        drop(pair);
        server.stop::<Side>().unwrap();
    }
}

#[test]
fn a_bare_exchange_completes_messages_and_stops_on_request() {
    for poll in [PollMode::Spin, PollMode::Block] {
        let [side, _] = measure(sides!(CacheLines), poll, 1);
        assert!(side.messages > 0);
        assert_eq!(side.bytes, 1000 * side.messages);
    }
}

#[test]
fn a_bare_exchange_excludes_long_messages() {
    assert!(CacheLines.exclusion(&Plan { size: 4096, ..plan(PollMode::Spin) }).is_none());
    assert!(CacheLines.exclusion(&Plan { size: 4097, ..plan(PollMode::Spin) }).is_some());
}

#[test]
fn an_apus_server_with_short_replies_answers_each_message_once() {
    let (serve, _) = sides!(apus(Calls::Many(Replies::Short), Path::Udp));
    let mut server = start(serve, json!({"poll": PollMode::Block}));
    let address = server.address().unwrap();
    let client = Endpoint::client().unwrap();
    for length in [1, 100_000, 3] {
        assert_eq!(client.call(address, pattern(length)).unwrap(), Replies::SHORT[..]);
    }
    let side: Side = server.stop().unwrap();
    // The measurement starts with the first message and excludes it.
    assert_eq!((side.messages, side.bytes), (2, 100_003));
}

#[test]
fn each_contender_completes_messages_in_each_polling_mode() {
    let contenders = [
        sides!(apus(Calls::OneByOne, Path::Udp)),
        sides!(apus(Calls::Many(Replies::Echo), Path::Udp)),
        sides!(apus(Calls::Many(Replies::Short), Path::Udp)),
        sides!(ReceiveMode::SelfPolling),
        sides!(ReceiveMode::Receivers(3)),
        sides!(Udp { connected: false }),
        sides!(Udp { connected: true }),
        sides!(Tcp { sends: SendMode::One, replies: Replies::Echo }),
        sides!(Tcp { sends: SendMode::One, replies: Replies::Short }),
        sides!(Tcp { sends: SendMode::Ready, replies: Replies::Echo }),
        sides!(apus(Calls::OneByOne, Path::Local)),
        sides!(apus(Calls::Many(Replies::Echo), Path::Local)),
        sides!(apus(Calls::Many(Replies::Short), Path::Local)),
        sides!(BarePair { calls: Calls::OneByOne }),
        sides!(BarePair { calls: Calls::Many(Replies::Echo) }),
        sides!(BarePair { calls: Calls::Many(Replies::Short) }),
        sides!(unix(UnixKind::Stream, Replies::Echo)),
        sides!(unix(UnixKind::Stream, Replies::Short)),
        sides!(unix(UnixKind::Seqpacket, Replies::Echo)),
        sides!(unix(UnixKind::Seqpacket, Replies::Short)),
    ];
    for contender in contenders {
        for poll in POLLS {
            let [side, _] = measure(contender, poll, 1);
            assert!(side.messages > 0 && side.elapsed > 0, "{side:?}");
            assert_eq!(side.bytes, side.messages * 1000);
        }
    }
}

#[test]
fn merged_datagrams_are_counted_by_their_bytes() {
    for poll in POLLS {
        let [sent, received] = measure(sides!(UdpGso), poll, 2);
        assert!(sent.bytes > 0 && received.bytes > 0, "{poll}");
        assert_eq!(received.bytes % 1472, 0, "whole packets only");
    }
}

#[test]
fn a_server_without_clients_stops_on_request() {
    let contenders = [
        sides!(apus(Calls::OneByOne, Path::Udp)),
        sides!(apus(Calls::Many(Replies::Echo), Path::Udp)),
        sides!(ReceiveMode::Receivers(4)),
        sides!(Udp { connected: true }),
        sides!(UdpGso),
        sides!(Tcp { sends: SendMode::One, replies: Replies::Echo }),
        sides!(apus(Calls::OneByOne, Path::Local)),
        sides!(BarePair { calls: Calls::OneByOne }),
        sides!(unix(UnixKind::Stream, Replies::Echo)),
        sides!(unix(UnixKind::Seqpacket, Replies::Echo)),
    ];
    for (serve, _) in contenders {
        for poll in POLLS {
            let mut server = start(serve, json!({"poll": poll}));
            server.address().unwrap();
            assert_eq!(server.stop::<Side>().unwrap().messages, 0);
        }
    }
}

#[test]
fn a_server_that_closes_the_connection_is_an_error_of_the_client() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // All four requests are read, so that the connection closes without a reset.
        stream.read_exact(&mut [0; 4 * 1004]).unwrap();
    });
    let (_, drive) = sides!(Tcp { sends: SendMode::One, replies: Replies::Echo });
    let client = start(drive, json!({"poll": PollMode::Block, "server": address}));
    let error = client.result::<Side>(Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains(&format!("{address} closed the connection")), "{error}");
    server.join().unwrap();
}

#[test]
fn a_reply_that_is_not_the_request_is_an_error_of_the_client() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = server.local_addr().unwrap();
    let (_, drive) = sides!(Udp { connected: false });
    let client = start(drive, json!({"poll": PollMode::Block, "server": address}));
    let mut request = [0; 2000];
    let (count, from) = server.recv_from(&mut request).unwrap();
    server.send_to(&vec![0xff; count], from).unwrap();
    let error = client.result::<Side>(Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("the reply to datagram 0 is another one"), "{error}");
}

#[test]
fn a_missing_server_is_an_error_of_the_client() {
    // While this socket is open, no other process can bind the port; datagrams to it are never
    // read.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    for (_, drive) in [
        sides!(apus(Calls::OneByOne, Path::Udp)),
        sides!(apus(Calls::Many(Replies::Echo), Path::Udp)),
    ] {
        let client = start(drive, json!({"poll": PollMode::Block, "server": address}));
        let error = client.result::<Side>(Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains(&format!("call {address}: ")), "{error}");
    }
}

#[test]
fn a_reply_of_another_length_is_an_error_of_the_client() {
    let server = Endpoint::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = server.local_addr();
    let answering = server.clone();
    let answering = thread::spawn(move || {
        while let Ok(request) = answering.recv_request() {
            let _ = request.reply("short");
        }
    });
    for (_, drive) in [
        sides!(apus(Calls::OneByOne, Path::Udp)),
        sides!(apus(Calls::Many(Replies::Echo), Path::Udp)),
    ] {
        let client = start(drive, json!({"poll": PollMode::Block, "server": address}));
        let error = client.result::<Side>(Duration::ZERO).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{address} answered with 5 bytes in place of 1000")),
            "{error}"
        );
    }
    server.shutdown();
    answering.join().unwrap();
}
