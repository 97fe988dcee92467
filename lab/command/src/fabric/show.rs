//! `apus-lab fabric show`: hosts and settings of a fabric, and the traffic of its switch.

use apus_report::result::Table;
use apus_testbed::fabric::persistent::{self, FabricName};
use apus_testbed::fabric::{Layout, PortCounters};
use clap::Args;
use serde_json::json;

use super::hosts;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Show the hosts and the settings of a fabric, and what its switch has carried to each host
///
/// Prints one line for each priority of each host that has seen packets: packets that left through
/// the port of the switch, their bytes (Ethernet headers included), packets dropped because the
/// queue was full, and bytes in the queue now.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus-lab fabric show
  apus-lab fabric show --name slow --json")]
pub(super) struct ShowArguments {
    /// Name of the fabric
    #[arg(long, value_name = "NAME", default_value_t)]
    name: FabricName,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Prints the fabric.
pub(super) fn run(arguments: &ShowArguments) -> Result<(), Failure> {
    let name = &arguments.name;
    let layout = persistent::find(name)?;
    let (counters, lost) = (layout.counters()?, layout.lost()?);
    if arguments.json {
        let object = json!({
            "name": name,
            "settings": layout.spec().settings(),
            "lost": lost,
            "hosts": hosts::json(&layout, &counters),
        });
        return output::line(&object.to_string());
    }
    let title = format!("fabric `{name}`: {}", layout.spec());
    output::line(&table(title, &layout, &counters).to_string())?;
    if layout.spec().loss > 0.0 {
        output::line(&format!("{lost} packets were dropped by --loss"))?;
    }
    Ok(())
}

/// Returns one line for each queue with traffic, and at least one for each host.
fn table(title: String, layout: &Layout, counters: &[PortCounters]) -> Table {
    let header = ["host", "address", "priority", "packets", "bytes", "drops", "queued bytes"];
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
