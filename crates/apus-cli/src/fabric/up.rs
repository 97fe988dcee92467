//! How is a fabric made that stays?

use std::env;

use apus_lab::fabric::standing::{self, Name};
use apus_lab::fabric::{INTERFACE, Layout};
use clap::Args;
use serde_json::json;

use super::settings::Settings;
use super::show::hosts;
use crate::failure::Failure;
use crate::output;

/// Make a network that stays until `apus fabric down`
///
/// Prints the hosts and their addresses. The network belongs to a process that waits in the background; it
/// is gone when that process ends, also by a crash or when the machine is switched off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fabric up --nodes 4
  apus fabric up --nodes 2 --name slow --link 10mbit --buffer 100kB
  apus fabric up --nodes 8 --loss 0.001 --json")]
pub(super) struct Arguments {
    /// Name of the network, if there is to be more than one
    #[arg(long, value_name = "NAME", default_value_t)]
    name: Name,
    #[command(flatten)]
    settings: Settings,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Makes it, and says what there is.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let name = &arguments.name;
    let program = env::current_exe().map_err(|error| Failure::of("find this program", &error))?;
    let layout = standing::up(&program, name, &arguments.settings.spec())?;
    if arguments.json {
        let object = json!({
            "name": name,
            "interface": INTERFACE,
            "settings": layout.spec().settings(),
            "hosts": hosts(&layout, &[]),
        });
        return output::line(&object.to_string());
    }
    output::line(&in_words(name, &layout))
}

/// What there is, and what to do with it.
fn in_words(name: &Name, layout: &Layout) -> String {
    let option = if *name == Name::default() { String::new() } else { format!("--name {name} ") };
    let mut text = format!("fabric `{name}` is up: {}\n", layout.spec());
    for node in 0..layout.spec().nodes {
        let (host, v4, v6) = (Layout::name(node), layout.address(node), layout.address_v6(node));
        text += &format!("  {host:<5}{:<12}  {v6}\n", v4.to_string());
    }
    let second = layout.address(1);
    text += &format!(
        "Try:\n  apus fabric exec {option}h2 -- apus serve {second}:4000\n  apus fabric exec \
         {option}h1 -- apus call {second}:4000\n  apus fabric show {option}\n  apus fabric down {option}"
    );
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
