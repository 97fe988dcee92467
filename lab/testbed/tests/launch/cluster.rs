//! Clusters of the launch tests: the work of their agents.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{self, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use apus_testbed::Error;
use apus_testbed::clock;
use apus_testbed::launch::{Launch, LocalNode};
use apus_testbed::process::{Begin, Control, Crew, Results, Task};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Result of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RingResult {
    /// Number received from the previous agent.
    pub(crate) heard: u8,
    /// Listening address assigned to the agent.
    pub(crate) bind: IpAddr,
    pub(crate) pid: u32,
    /// Start, by the agent's clock.
    began: u64,
}

/// Runs an agent of these tests.
pub(crate) fn work(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let system = |error: io::Error| Error::Peer(error.to_string());
    match task.job.as_str() {
        "ring" => {
            let bind = task.bind.expect("every launch says where");
            let listener = TcpListener::bind((bind, 0)).map_err(system)?;
            control.ready(listener.local_addr().map_err(system)?)?;
            let Begin { details: next, at } = control.begin::<SocketAddr>()?;
            while clock::now() < at {
                std::thread::yield_now();
            }
            let began = clock::now();
            let number = u8::try_from(task.details.as_u64().expect("a number")).expect("small");
            TcpStream::connect(next).and_then(|mut n| n.write_all(&[number])).map_err(system)?;
            let mut heard = [0];
            listener.accept().and_then(|(mut f, _)| f.read_exact(&mut heard)).map_err(system)?;
            Ok(json!(RingResult { heard: heard[0], bind, pid: process::id(), began }))
        }
        "wait" => {
            let (wakes, woken) = mpsc::channel();
            // A second call has no receiver.
            control.stop().wake_with(move || {
                let _ = wakes.send(());
            });
            // Its port encodes its process number.
            let number = u16::try_from(process::id() % 60_000).expect("below 60000");
            control.ready((Ipv4Addr::LOCALHOST, number).into())?;
            woken.recv().expect("the sender lives as long as the control");
            Ok(json!(process::id()))
        }
        "die" => {
            control.ready((Ipv4Addr::LOCALHOST, 1).into())?;
            let Begin { details: Value::Null, .. } = control.begin()? else { panic!("no details") };
            eprintln!("the disk is full");
            process::exit(3)
        }
        other => panic!("no job is named {other}"),
    }
}

/// Starts one agent for each job, each with its number.
pub(crate) fn start(launch: &Launch, jobs: &[&str]) -> Result<Crew, Error> {
    let task = |(number, job): (usize, &&str)| Task {
        name: format!("node {number}"),
        core: None,
        bind: None,
        job: (*job).to_owned(),
        details: json!(number),
    };
    launch.start(jobs.iter().enumerate().map(task).collect())
}

/// Passes numbers around a ring: every agent receives the number of the agent before it.
pub(crate) fn ring(launch: &Launch) -> Vec<RingResult> {
    let nodes = launch.nodes();
    let mut crew = start(launch, &vec!["ring"; nodes]).unwrap();
    let mut next = crew.addresses().unwrap();
    next.rotate_left(1);
    let at = crew.begin(&next, Duration::from_millis(200)).unwrap();
    let clocks = crew.clocks().to_vec();
    let met = crew.results::<RingResult>(Duration::ZERO).all().unwrap();
    for (number, (met, clock)) in met.iter().zip(clocks).enumerate() {
        assert_eq!(usize::from(met.heard), (number + nodes - 1) % nodes);
        assert!(clock.to_parent(met.began) >= at, "no agent begins before the common start");
    }
    met
}

pub(crate) fn local_nodes_have_a_command_and_an_address_each() {
    let node = |number: u8| LocalNode {
        name: format!("h{number}"),
        prefix: vec!["env".into(), format!("APUS_TEST={number}").into()],
        bind: [127, 0, 0, number].into(),
    };
    let program = env::current_exe().unwrap();
    let launch = Launch::Local { nodes: (1..=3).map(node).collect(), program };
    let met = ring(&launch);
    assert_eq!(met[2].bind, IpAddr::from([127, 0, 0, 3]));
    let mut crew = start(&launch, &["wait", "die"]).unwrap();
    crew.addresses().unwrap();
    crew.begin(&[(); 2], Duration::ZERO).unwrap();
    let Results { each, failure } = crew.results::<u32>(Duration::ZERO);
    let failure = failure.unwrap().to_string();
    assert_eq!(failure, "node 1 on h2: exit status: 3: the disk is full");
    assert!(each[0].is_some() && each[1].is_none(), "{each:?}");
}

/// The hosts of a fabric are entered in this way.
pub(crate) fn nodes_in_another_namespace_are_entered() {
    let mut holder = Command::new("unshare")
        .args([
            "--net",
            "--",
            "sh",
            "-c",
            "ip link set lo up && ip address add 10.9.9.9/32 dev lo && \
                echo made && exec cat",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut made = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut made).unwrap();
    assert_eq!(made, "made\n");
    let pid = holder.id().to_string();
    let node = |name: &str| LocalNode {
        name: name.to_owned(),
        prefix: ["nsenter", "--target", &pid, "--net", "--"].map(OsString::from).to_vec(),
        bind: [10, 9, 9, 9].into(),
    };
    let program = env::current_exe().unwrap();
    let launch = Launch::Local { nodes: vec![node("h1"), node("h2")], program };
    ring(&launch);
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    // The namespace no longer exists, and neither does any process in it.
    let gone = start(&launch, &["ring"]).unwrap().addresses().unwrap_err().to_string();
    assert!(gone.starts_with("node 0 on h1: exit status: 1: nsenter: "), "{gone}");
}

pub(crate) fn threads_serve_as_nodes() {
    let met = ring(&Launch::Threads { runner: work, nodes: 3 });
    assert!(met.iter().all(|met| met.pid == process::id()));
}
