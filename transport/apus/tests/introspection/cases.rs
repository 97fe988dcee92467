//! Cases of introspection, each of which runs in a separate process.

use crate::traces;
use apus::introspection::{Error, Process, SenderRow, Senders, processes};
use apus::{Config, ConfigBuilder, Endpoint, EndpointBuilder};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio, id};

/// All cases by name.
const CASES: &[(&str, fn())] = &[
    ("it_responds_while_it_has_endpoints", it_responds_while_it_has_endpoints),
    ("live_rpcs_are_shown", live_rpcs_are_shown),
    ("senders_are_shown", senders_are_shown),
    ("each_shard_is_shown", each_shard_is_shown),
    ("one_thread_serves_all_endpoints", one_thread_serves_all_endpoints),
    ("nonsense_is_refused", nonsense_is_refused),
    ("a_hidden_endpoint_is_hidden", a_hidden_endpoint_is_hidden),
    ("the_environment_hides_all", the_environment_hides_all),
    ("an_open_folder_is_not_trusted", an_open_folder_is_not_trusted),
    ("it_is_aborted", it_is_aborted),
    ("it_has_no_descriptors", it_has_no_descriptors),
    ("one_without_descriptors_is_inspected", one_without_descriptors_is_inspected),
    ("its_trace_is_read_frozen_and_resumed", traces::its_trace_is_read_frozen_and_resumed),
    ("it_refuses_to_freeze_without_a_trace", traces::it_refuses_to_freeze_without_a_trace),
];

/// Runs the case with this name.
pub(crate) fn run(name: &str) {
    let (_, case) = CASES.iter().find(|case| case.0 == name).expect("a case has this name");
    case();
}

fn it_responds_while_it_has_endpoints() {
    assert_eq!(processes().unwrap(), []);
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    let client = Endpoint::client().unwrap();
    let found = processes().unwrap();
    assert_eq!(found, [Process::new(id())]);
    let snapshot = found[0].snapshot().unwrap();
    assert_eq!((snapshot.pid, snapshot.version.as_str()), (id(), env!("CARGO_PKG_VERSION")));
    let addresses: Vec<_> = snapshot.endpoints.iter().map(|one| one.address).collect();
    assert_eq!(addresses, [server.local_addr(), client.local_addr()]);
    assert!(
        snapshot.cpu_nanos > 0 && snapshot.program.starts_with("introspection"),
        "{snapshot:?}"
    );
    let later = found[0].snapshot().unwrap();
    assert!(later.monotonic_nanos > snapshot.monotonic_nanos);
    assert_eq!(apus::introspection::own_snapshot().endpoints.len(), 2);

    drop(server.clone());
    drop(server);
    assert_eq!(found[0].snapshot().unwrap().endpoints.len(), 1);
    drop(client);
    assert_eq!(processes().unwrap(), []);
    assert!(matches!(found[0].snapshot(), Err(Error::Absent { .. })));
    // The service starts again with the next endpoint.
    let _again = Endpoint::client().unwrap();
    assert_eq!(found[0].snapshot().unwrap().endpoints.len(), 1);
}

/// Opens descriptors until the system grants none, and waits for the end of its input.
fn it_has_no_descriptors() {
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), ..before }).unwrap();
    let mut hoard = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        hoard.push(file);
    }
    println!("hoarding {}", server.local_addr());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(hoard);
}

/// A process keeps descriptors in reserve for its inspection.
fn one_without_descriptors_is_inspected() {
    let mut hoarder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_other_process", "--nocapture", "--test-threads", "1"])
        .env(crate::CASE, "it_has_no_descriptors")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(hoarder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("hoarding")), "it has ended");
    let process = Process::new(hoarder.id());
    for _ in 0..3 {
        let snapshot = process.snapshot().unwrap();
        assert_eq!((snapshot.pid, snapshot.endpoints.len()), (hoarder.id(), 1));
        assert!(snapshot.cpu_nanos > 0, "the files of the response were read");
    }
    drop(hoarder.stdin.take());
    // The rest of its output must be read, or it would wait.
    lines.for_each(drop);
    assert!(hoarder.wait().unwrap().success());
}

fn each_shard_is_shown() {
    let over_the_network = || EndpointBuilder::default().local(false);
    let server = over_the_network().shards(3).bind("127.0.0.1:0").unwrap();
    let client = over_the_network().client().unwrap();
    let places = || {
        let snapshot = Process::new(id()).snapshot().unwrap();
        snapshot.endpoints.iter().map(|one| (one.address, one.shard)).collect::<Vec<_>>()
    };
    let address = server.local_addr();
    let mut expected: Vec<_> = (0..3).map(|shard| (address, Some(shard))).collect();
    expected.push((client.local_addr(), None));
    assert_eq!(places(), expected);

    // Its first call needs further shards.
    server.send(client.local_addr(), "refused", 0).unwrap();
    let shards: Vec<_> = places().iter().filter_map(|(_, shard)| *shard).collect();
    assert_eq!(shards, [0, 1, 2, 3, 4, 5]);
    let snapshot = Process::new(id()).snapshot().unwrap();
    let change = snapshot.since(&snapshot);
    assert!(change.endpoints.iter().all(|one| one.counter("client_requests_started") == 0));
    assert_eq!(snapshot.total().unwrap().counter("client_requests_started"), 1);
}

/// Number of threads that run loops while the application does not.
fn background_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    tasks
        .filter_map(|task| name(task.ok()?).ok())
        .filter(|name| name == "apus-background\n")
        .count()
}

fn one_thread_serves_all_endpoints() {
    let over_the_network = || EndpointBuilder::default().local(false);
    assert_eq!(background_threads(), 0);
    let server = over_the_network().shards(2).bind("127.0.0.1:0").unwrap();
    let clients: Vec<_> = (0..20).map(|_| over_the_network().client().unwrap()).collect();
    for client in &clients {
        client.send(server.local_addr(), "x", 0).unwrap();
    }
    // No thread waits: the background poller runs all loops.
    let done = |client: &Endpoint| client.metrics().protocol.progress.client_responses_done;
    let mut served = 0;
    while clients.iter().any(|client| done(client) == 0) {
        if let Some(request) = server.try_recv_request().unwrap() {
            request.reply("").unwrap();
            served += 1;
        }
    }
    assert_eq!((served, background_threads()), (20, 1));
    drop(clients);
    assert_eq!(background_threads(), 1);
    drop(server);
    await_no_background_thread();
    drop(over_the_network().client().unwrap());
    await_no_background_thread();
}

/// Waits until the system has removed the thread, which it may list for a moment after its end.
fn await_no_background_thread() {
    while background_threads() > 0 {
        std::thread::yield_now();
    }
}

fn live_rpcs_are_shown() {
    let over_the_network = || EndpointBuilder::default().local(false);
    let server = over_the_network().bind("127.0.0.1:0").unwrap();
    let client = over_the_network().client().unwrap();
    client.send(server.local_addr(), "12345", 0).unwrap();
    let request = server.recv_request().unwrap();
    let rpcs = Process::new(id()).rpcs().unwrap();
    let found = |role: &str| rpcs.iter().find(|rpc| rpc.role == role).unwrap();
    assert_eq!(rpcs.len(), 2, "{rpcs:?}");
    assert_eq!(found("client").peer, server.local_addr());
    assert_eq!(found("client").outgoing.map(|message| message.length), Some(5));
    assert_eq!(found("server").state, "in_service");
    assert_eq!(found("server").id, found("client").id);
    request.reply("x").unwrap();
    client.recv_completion().unwrap();
    assert!(client.drain(std::time::Duration::from_secs(60)));
}

fn senders_are_shown() {
    let builder = |config: ConfigBuilder| {
        let config = config.informed_incoming(18_000).build().unwrap();
        EndpointBuilder::default().local(false).config(config)
    };
    let server = builder(Config::builder()).bind("127.0.0.1:0").unwrap();
    // The message takes half a minute at 10 Mbit/s: it is arriving while it is reported.
    let client = builder(Config::builder().link_mbps(10)).client().unwrap();
    let process = Process::new(id());
    assert_eq!(process.senders().unwrap(), Senders::default());
    let call = client.send(server.local_addr(), vec![0; 40_000_000], 0).unwrap();
    let senders = loop {
        let senders = process.senders().unwrap();
        if senders.rows.iter().any(|row| row.sender.credit_used > 0) {
            break senders;
        }
        assert_eq!(client.info().len(), 1, "the message has arrived: {senders:?}");
    };
    assert_eq!((senders.count, senders.rows.len()), (1, 1));
    let SenderRow { endpoint, sender } = senders.rows[0];
    assert_eq!((endpoint, sender.messages), (server.local_addr(), 1));
    assert_eq!(sender.peer.port(), client.local_addr().port());
    assert!(sender.credit > 0 && sender.credit <= 18_000, "{sender:?}");
    assert!(sender.reported_backlog.is_some(), "{sender:?}");
    assert!(client.cancel(call));
}

fn nonsense_is_refused() {
    let _endpoint = Endpoint::client().unwrap();
    let process = Process::new(id());
    let Err(Error::Refused { message, .. }) = process.request("dance") else { panic!() };
    assert!(message.contains("`dance`") && message.contains("`metrics`"), "{message}");
    let help = String::from_utf8(process.request("help").unwrap()).unwrap();
    assert!(help.contains("`rpcs`") && help.contains("`senders`"), "{help}");

    let folder = std::env::var_os("APUS_RUNTIME_DIR").unwrap();
    let socket = Path::new(&folder).join(format!("{}.sock", id()));
    let connect = || UnixStream::connect(&socket).unwrap();
    // A client that disconnects without a request.
    drop(connect());
    for words in [vec![0xff; 100_000], vec![b'x'; 1_000], b"\n".to_vec()] {
        let mut stream = connect();
        // Fails if the service has disconnected.
        let _ = stream.write_all(&words);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("\"ok\":true"));
    }
    process.snapshot().unwrap();
}

fn a_hidden_endpoint_is_hidden() {
    let _hidden = EndpointBuilder::default().observable(false).client().unwrap();
    assert_eq!(processes().unwrap(), []);
    let seen = Endpoint::client().unwrap();
    let snapshot = Process::new(id()).snapshot().unwrap();
    assert_eq!(snapshot.endpoints.len(), 1);
    assert_eq!(snapshot.endpoints[0].address, seen.local_addr());
}

fn the_environment_hides_all() {
    let _hidden = Endpoint::client().unwrap();
    assert_eq!(processes().unwrap(), []);
}

fn an_open_folder_is_not_trusted() {
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    let client = Endpoint::client().unwrap();
    client.send(server.local_addr(), "x", 0).unwrap();
    server.recv_request().unwrap().reply("y").unwrap();
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "y");
    let error = processes().unwrap_err().to_string();
    assert!(error.contains("chmod 700"), "{error}");
}

fn it_is_aborted() {
    let _endpoint = Endpoint::client().unwrap();
    assert_eq!(processes().unwrap().len(), 1);
    std::process::abort();
}
