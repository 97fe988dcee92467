//! A rolling restart of real processes: no call is lost, and none is executed twice.

use apus_rpc::layers::{Budget, Retry};
use apus_rpc::{Balance, BoxFuture, Handler, Request, Response, Server, Status, names};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Environment variable that makes a process of this test a server.
const ROLE: &str = "APUS_RPC_TEST_SERVER";

struct Counting(Arc<AtomicU64>);

impl Handler for Counting {
    fn service(&self) -> &'static str {
        "test"
    }

    fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            // Some of the calls are in progress when the server drains.
            tokio::task::yield_now().await;
            Ok(Response::new(request.into_body().into_bytes(100).await?))
        })
    }
}

/// The server process: prints its address, serves until its standard input ends, drains, and prints
/// the number of executions.
#[test]
fn server_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = apus::tokio::Endpoint::bind("127.0.0.1:0").await.unwrap();
        let executed = Arc::new(AtomicU64::new(0));
        let server = Server::new(endpoint.clone()).add_service(Counting(executed.clone()));
        let (control, served) = server.start();
        tokio::spawn(served);
        println!("address {}", endpoint.local_addr());
        let input = || std::io::stdin().lines().for_each(drop);
        tokio::task::spawn_blocking(input).await.unwrap();
        assert!(control.drain(Duration::from_secs(60)).await, "drained");
        println!("executed {}", executed.load(Ordering::Relaxed));
        // Clients that still call are refused until the process ends.
        endpoint.shutdown();
    });
}

/// A server process, which ends with this value.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Process {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rolling::server_process", "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = value(&mut output, "address").parse().unwrap();
        Self { child, output, address }
    }

    /// Drains the server, and returns the number of executed calls.
    fn end(mut self) -> u64 {
        drop(self.child.stdin.take());
        let executed = value(&mut self.output, "executed").parse().unwrap();
        // Otherwise the rest of the output would fill the pipe.
        std::io::copy(&mut self.output, &mut std::io::sink()).unwrap();
        assert!(self.child.wait().unwrap().success());
        executed
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines until one contains this name, and returns the text after it. The test harness writes
/// into lines as well.
fn value(output: &mut impl BufRead, name: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the process ended before {name:?}");
        if let Some((_, value)) = line.split_once(&format!("{name} ")) {
            return value.trim().to_owned();
        }
    }
}

fn write_names(path: &std::path::Path, servers: &[Process]) {
    let new = path.with_extension("new");
    let mut file = std::fs::File::create(&new).unwrap();
    for server in servers {
        writeln!(file, "{}", server.address).unwrap();
    }
    drop(file);
    std::fs::rename(new, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("servers");
    let mut servers: Vec<Process> = (0..3).map(|_| Process::start()).collect();
    write_names(&path, &servers);
    let endpoint = apus::tokio::Endpoint::client().await.unwrap();
    let names = names::file(&path, Duration::from_millis(5)).unwrap();
    // Restarts follow each other faster than in production: the reserve covers that, and the budget
    // still bounds retries.
    let service =
        Retry::new(Balance::new(endpoint, names)).max_attempts(8).budget(Budget::new(10, 1_000));
    let done = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicU64::new(0));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..8_u64 {
        let (service, done, answered) = (service.clone(), done.clone(), answered.clone());
        clients.spawn(async move {
            let mut number = client << 32;
            while !done.load(Ordering::Relaxed) {
                number += 1;
                let bytes = number.to_le_bytes().to_vec();
                // Not idempotent: only calls that were certainly not executed are sent again.
                let request = Request::new("test/echo", bytes.clone());
                let response =
                    apus_rpc::typed::send(&service, request).await.expect("no call is lost");
                assert_eq!(response.into_body().into_bytes(8).await.unwrap(), bytes);
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut executed = 0;
    for _ in 0..3 {
        let calls = answered.load(Ordering::Relaxed);
        while answered.load(Ordering::Relaxed) < calls + 200 && clients.len() == 8 {
            tokio::task::yield_now().await;
            while let Some(ended) = clients.try_join_next() {
                ended.unwrap();
            }
        }
        // As a supervisor does: the old process drains while it still has its name, then the new
        // one replaces it.
        let old = servers.remove(0);
        executed += tokio::task::spawn_blocking(move || old.end()).await.unwrap();
        servers.push(tokio::task::spawn_blocking(Process::start).await.unwrap());
        write_names(&path, &servers);
    }
    let calls = answered.load(Ordering::Relaxed);
    while answered.load(Ordering::Relaxed) < calls + 200 && clients.len() == 8 {
        tokio::task::yield_now().await;
    }
    done.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    for server in servers {
        executed += tokio::task::spawn_blocking(move || server.end()).await.unwrap();
    }
    assert_eq!(executed, answered.load(Ordering::Relaxed), "every call is executed once");
}
