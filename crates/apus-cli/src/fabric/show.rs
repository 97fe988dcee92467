//! What is a fabric, and what has it carried?

use apus_lab::fabric::standing::{self, Name};
use apus_lab::fabric::{Layout, PortCounters};
use apus_lab::result::Table;
use clap::Args;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output;

/// Show hosts, settings, and what the switch has carried to each host
///
/// One line for each host and priority that anything was sent to: packets that left through the port,
/// their bytes (with Ethernet headers), packets that found the queue full, and bytes that wait there now.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fabric show
  apus fabric show --name slow --json")]
pub(super) struct Arguments {
    /// Name of the network
    #[arg(long, value_name = "NAME", default_value_t)]
    name: Name,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Shows it.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let name = &arguments.name;
    let layout = standing::find(name)?;
    let (counters, lost) = (layout.counters()?, layout.lost()?);
    if arguments.json {
        let object = json!({
            "name": name,
            "settings": layout.spec().settings(),
            "lost": lost,
            "hosts": hosts(&layout, &counters),
        });
        return output::line(&object.to_string());
    }
    let title = format!("fabric `{name}`: {}", layout.spec());
    output::line(&table(title, &layout, &counters).to_string())?;
    if layout.spec().loss > 0.0 {
        output::line(&format!("{lost} packets were lost because --loss asked for it"))?;
    }
    Ok(())
}

/// Hosts with their queues, as JSON.
pub(super) fn hosts(layout: &Layout, counters: &[PortCounters]) -> Value {
    let host = |node| {
        let mut host = json!({
            "name": Layout::name(node),
            "address": layout.address(node),
            "address_v6": layout.address_v6(node),
        });
        let queues: Vec<_> = counters.iter().filter(|queue| queue.node == node).collect();
        if !queues.is_empty() {
            let mut levels = json!(queues);
            for level in levels.as_array_mut().into_iter().flatten() {
                // Said by where it stands.
                level.as_object_mut().map(|level| level.remove("node"));
            }
            host["levels"] = levels;
        }
        host
    };
    (0..layout.spec().nodes).map(host).collect()
}

/// Hosts with those of their queues that anything was in; a line at least for each.
fn table(title: String, layout: &Layout, counters: &[PortCounters]) -> Table {
    let header = ["host", "address", "level", "packets", "bytes", "drops", "waiting"];
    let mut lines = Vec::new();
    for node in 0..layout.spec().nodes {
        let used = |queue: &&PortCounters| {
            queue.node == node && (queue.packets > 0 || queue.drops > 0 || queue.backlog > 0)
        };
        let start = [Layout::name(node), layout.address(node).to_string()];
        let before = lines.len();
        for queue in counters.iter().filter(used) {
            let figures = [queue.packets, queue.bytes, queue.drops, queue.backlog];
            let cells = start.clone().into_iter().chain([queue.level.to_string()]);
            lines.push(cells.chain(figures.map(|figure| figure.to_string())).collect());
        }
        if lines.len() == before {
            let nothing = ["-", "0", "0", "0", "0"].map(str::to_owned);
            lines.push(start.into_iter().chain(nothing).collect());
        }
    }
    Table { title, header: header.map(str::to_owned).to_vec(), lines }
}
