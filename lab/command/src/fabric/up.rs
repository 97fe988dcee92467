//! `apus-lab fabric up`: builds a fabric that outlives the command.

use std::env;

use apus_testbed::fabric::persistent::{self, FabricName};
use apus_testbed::fabric::{INTERFACE, Layout};
use apus_workload::{Rate, units};
use clap::Args;
use serde_json::json;

use super::hosts;
use crate::network::Network;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Build a fabric that stays until `apus-lab fabric down`
///
/// Prints the hosts and their addresses. A process in the background owns the fabric, which
/// disappears with that process, be it by a crash or because the machine is switched off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus-lab fabric up --nodes 4
  apus-lab fabric up --nodes 2 --name slow --link 10mbit --buffer 100kB
  apus-lab fabric up --nodes 8 --loss 0.001 --json")]
pub(super) struct UpArguments {
    /// Name of the fabric, if there is more than one
    #[arg(long, value_name = "NAME", default_value_t)]
    name: FabricName,
    /// Number of hosts: 2 to 128
    #[arg(long, value_name = "HOSTS", default_value = "8", allow_negative_numbers = true)]
    nodes: usize,
    /// Rate of every link, 1mbit to 100gbit: bits on the wire, preamble and gap included
    #[arg(long, value_name = "RATE", default_value = "200mbit", value_parser = units::rate)]
    link: Rate,
    #[command(flatten)]
    network: Network,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Builds the fabric, and prints its hosts.
pub(super) fn run(arguments: &UpArguments) -> Result<(), Failure> {
    let UpArguments { name, nodes, link, network, .. } = arguments;
    let program = env::current_exe().map_err(|error| Failure::of("find this program", &error))?;
    let layout = persistent::up(&program, name, &network.spec(*nodes, *link))?;
    if arguments.json {
        let object = json!({
            "name": name,
            "interface": INTERFACE,
            "settings": layout.spec().settings(),
            "hosts": hosts::json(&layout, &[]),
        });
        return output::line(&object.to_string());
    }
    output::line(&text(name, &layout))
}

/// Returns the hosts, and commands to try.
fn text(name: &FabricName, layout: &Layout) -> String {
    let option =
        if *name == FabricName::default() { String::new() } else { format!("--name {name} ") };
    let mut text = format!("fabric `{name}` is up: {}\n", layout.spec());
    for node in 0..layout.spec().nodes {
        let (host, v4, v6) = (Layout::name(node), layout.address(node), layout.address_v6(node));
        text += &format!("  {host:<5}{:<12}  {v6}\n", v4.to_string());
    }
    let second = layout.address(1);
    text += &format!(
        "Try:\n  apus-lab fabric exec {option}h2 -- apus serve {second}:4000\n  apus-lab fabric exec \
         {option}h1 -- apus call {second}:4000\n  apus-lab fabric show {option}\n  apus-lab fabric down {option}"
    );
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
