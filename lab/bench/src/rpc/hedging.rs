//! The experiment `rpc-hedging`: two servers that stall at random, called without and with hedging.

use crate::error::Error;
use crate::options::RpcOptions;
use crate::server::{ServerProcess, announce, until_the_end};
use crate::sides::client;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::result::{Figure, Outcome, Ratio, Row};
use apus_report::stats::{Latencies, Spread};
use apus_rpc::apus::tokio::Endpoint;
use apus_rpc::layers::Hedge;
use apus_rpc::typed::Service;
use apus_rpc::{Balance, names};
use serde_json::json;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

/// Duration of a stall.
const STALL: Duration = Duration::from_millis(100);

/// Number of outstanding calls. Few, so that the tail shows the servers and not a queue.
const CALLERS: u64 = 4;

#[apus_rpc::service]
trait Stalling {
    #[idempotent]
    async fn call(&self, id: u64) -> u64;
}

struct Stalls {
    random: Mutex<fastrand::Rng>,
    percent: u32,
    executed: Mutex<(u64, HashSet<u64>)>,
}

impl Stalling for Stalls {
    async fn call(&self, id: u64) -> u64 {
        {
            let mut executed = self.executed.lock().expect("no panic");
            executed.0 += 1;
            executed.1.insert(id);
        }
        let stalls = self.random.lock().expect("no panic").u32(..100) < self.percent;
        if stalls {
            tokio::time::sleep(STALL).await;
        }
        id
    }
}

/// In the server's process: serves, and prints the number of executions and of repeated executions.
pub(crate) async fn serve(seed: u64, percent: u32) -> Result<(), Error> {
    let endpoint = Endpoint::builder().local(false).bind("127.0.0.1:0").await?;
    announce(endpoint.local_addr());
    let stalls = std::sync::Arc::new(Stalls {
        random: Mutex::new(fastrand::Rng::with_seed(seed)),
        percent,
        executed: Mutex::default(),
    });
    let handler = StallingServer::from_arc(stalls.clone());
    tokio::spawn(apus_rpc::Server::new(endpoint).add_service(handler).serve());
    until_the_end().await?;
    let executed = stalls.executed.lock().expect("no panic");
    println!("{} {}", executed.0, executed.0 - executed.1.len() as u64);
    Ok(())
}

/// Figures of a run.
struct Figures {
    p50_us: f64,
    p99_us: f64,
    calls: u64,
    executions: u64,
    repeated: u64,
}

/// Measures both, interleaved.
pub(crate) async fn run(options: &RpcOptions) -> Result<Findings, Error> {
    let progress = Progress::of(options.runs * 2);
    let (mut plain, mut hedged) = (Vec::new(), Vec::new());
    for run in 0..options.runs {
        progress.step("plain");
        plain.push(measure(options, run, |balance| balance).await?);
        progress.step("hedged");
        hedged.push(measure(options, run, Hedge::new).await?);
    }
    drop(progress);
    let mut outcome = Outcome::new("rpc-hedging", options.config());
    outcome.rows = vec![row("plain", &plain), row("hedged", &hedged)];
    let values =
        |of: &[Figures], value: fn(&Figures) -> f64| -> Vec<f64> { of.iter().map(value).collect() };
    let p99 = |figures: &Figures| figures.p99_us;
    let more = |figures: &Figures| figures.executions as f64 / figures.calls as f64;
    let ratios = [
        ("p99 hedged/plain", Ratio::over(&values(&hedged, p99), &values(&plain, p99))),
        ("executions hedged/plain", Ratio::over(&values(&hedged, more), &values(&plain, more))),
    ];
    for (name, ratio) in ratios {
        outcome.ratios.extend(ratio.map(|ratio| (name.to_owned(), ratio)));
    }
    let lead = "Two servers, each of which stalls for 100 ms in some of its calls, drawn at random. Four calls are outstanding.";
    Ok(Findings::new(outcome, "What does hedging save?", lead).with_all(Vec::new(), Vec::new(), []))
}

fn row(name: &str, runs: &[Figures]) -> Row {
    let spread = |value: fn(&Figures) -> f64| {
        Figure::Spread(Spread::over(&runs.iter().map(value).collect::<Vec<_>>()))
    };
    let sum =
        |value: fn(&Figures) -> u64| Figure::Detail(json!(runs.iter().map(value).sum::<u64>()));
    Row::new(name)
        .with("p50_us", spread(|figures| figures.p50_us))
        .with("p99_us", spread(|figures| figures.p99_us))
        .with("calls", sum(|figures| figures.calls))
        .with("executions", sum(|figures| figures.executions))
        .with("executed_twice_by_one_server", sum(|figures| figures.repeated))
}

async fn measure<S: Service + 'static>(
    options: &RpcOptions,
    run: usize,
    around: impl Fn(Balance) -> S,
) -> Result<Figures, Error> {
    let mut servers = Vec::new();
    for server in 0..2_u64 {
        let seed = options.seed + 2 * run as u64 + server;
        let arguments = ["serve-stalling".to_owned(), seed.to_string(), options.stalls.to_string()];
        servers.push(ServerProcess::start(&arguments).await?);
    }
    let addresses = servers.iter().map(|server| server.address);
    let balance = Balance::new(client().await?, names::list(addresses));
    let client = StallingClient::new(around(balance));
    let latencies = Rc::new(RefCell::new(Latencies::new()));
    let began = Instant::now();
    let (warm, end) =
        (began + options.period() / 10, began + options.period() / 10 + options.period());
    let tasks = LocalSet::new();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (client, latencies) = (client.clone(), latencies.clone());
            tasks.spawn_local(async move {
                let (mut now, mut calls) = (Instant::now(), 0);
                while now < end || latencies.borrow().is_empty() {
                    calls += 1;
                    client.call((caller << 48) + calls).await?;
                    let after = Instant::now();
                    if now >= warm {
                        latencies.borrow_mut().record((after - now).as_nanos() as u64);
                    }
                    now = after;
                }
                Ok::<u64, Error>(calls)
            })
        })
        .collect();
    let calls = tasks
        .run_until(async {
            let mut calls = 0;
            for caller in callers {
                calls += caller.await??;
            }
            Ok::<u64, Error>(calls)
        })
        .await?;
    let (mut executions, mut repeated) = (0, 0);
    for server in servers {
        let line = server.end().await?;
        let counts = line.split_once(' ').ok_or("the server printed no counts")?;
        executions += counts.0.parse::<u64>()?;
        repeated += counts.1.parse::<u64>()?;
    }
    let latencies = latencies.borrow();
    Ok(Figures {
        p50_us: latencies.quantile(0.5) as f64 / 1e3,
        p99_us: latencies.quantile(0.99) as f64 / 1e3,
        calls,
        executions,
        repeated,
    })
}
