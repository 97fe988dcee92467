//! What do short messages suffer when the network is busy?
//!
//! Several hosts, each of them server and client, exchange the messages of a workload at a load that hurts,
//! over real sockets and links of a real rate. Each transport in turn, or several at once.
//!
//! ```text
//!   link       --link auto: the highest rate that leaves the cores idle enough
//!   base       each transport alone, one request at a time  → best possible time of each size
//!   runs       open loop at 80 % of every link, n runs      → slowdown by size
//!
//!   every run:  Site ─▶ Crew of nodes ─▶ one start instant ─▶ results, put together
//!               fresh namespaces, fresh processes, fresh connections
//! ```

mod node;
mod offered;
mod options;
mod phases;
pub mod report;
mod run;
mod site;
mod switch;

pub use options::{Link, Mix, Options};
pub use switch::{LevelLoad, SwitchLoad};

use apus_sim::Rate;
use serde_json::Value;

use crate::error::Error;
use crate::process::{Control, Task};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "cluster";

/// Share of the time that the cores have nothing to do at the rate that [`Link::Auto`] chooses, at least.
/// Source: the command line's contract.
pub const IDLE: f64 = 0.4;

/// A probe.
pub fn probe(options: &Options) -> Result<String, Error> {
    use std::fmt::Write;
    let m = phases::Phases::new(options)?.run()?;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "link {} ({}), {:.0} requests/s/node; notes {:?}",
        m.link.mbps, m.link.how, m.rate, m.notes
    );
    let _ = writeln!(
        out,
        "base {:?}",
        m.scale.best.iter().step_by(m.scale.best.len().div_ceil(12)).collect::<Vec<_>>()
    );
    for (mix, runs) in options.transports.iter().zip(&m.runs) {
        for run in runs {
            for (i, p) in run.parts.iter().enumerate() {
                let s = &p.summary;
                let _ = writeln!(
                    out,
                    "{:24} short {:6.2} {:8.2} us {:6.0} {:8.0} all {:6.2} {:8.2} bytes {:6.2} kept {:.3} err {} {:?} n {} Mbit/s {:.0} cpu/GB {:.1} idle {:.2} q {:.0}/{} drops {}",
                    mix.row(i),
                    s.short.p50,
                    s.short.p99,
                    s.short_us.p50,
                    s.short_us.p99,
                    s.all.p50,
                    s.all.p99,
                    s.mean_by_bytes,
                    p.kept_up,
                    p.errors,
                    p.why,
                    s.messages,
                    p.throughput / 1e6,
                    p.cpu_per_gb,
                    run.idle.unwrap_or(0.0),
                    run.switch.as_ref().map_or(0.0, |s| s.queue_mean),
                    run.switch.as_ref().map_or(0, |s| s.queue_max),
                    run.switch.as_ref().map_or(0, |s| s.levels.iter().map(|l| l.drops).sum())
                );
                let _ = writeln!(
                    out,
                    "   late us p50 {} p99 {} max {} {:?}",
                    p.late.quantile(0.5) / 1000,
                    p.late.quantile(0.99) / 1000,
                    p.late.quantile(1.0) / 1000,
                    p.counters.iter().filter(|c| *c.1 > 0).collect::<Vec<_>>()
                );
            }
        }
    }
    Ok(out)
}

/// Does one node's work in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    node::agent(task, control)
}

/// A rate that the options have been checked to allow.
fn rate(mbps: u64) -> Rate {
    Rate::from_mbps(mbps).expect("a rate within the limits of a fabric")
}
