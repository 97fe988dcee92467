//! What has the switch counted?

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::refusal::Refusal;
use super::shaping::level;
use super::tool::Tool;
use crate::error::Error;

/// One queue of the switch: a port and a level of priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// The host that the port leads to; the first one is 0.
    pub node: usize,
    /// The level; 7 goes first.
    pub level: u8,
    /// Packets that have left.
    pub packets: u64,
    /// Their bytes, Ethernet headers of 14 bytes included.
    pub bytes: u64,
    /// Packets that found the queue full.
    pub drops: u64,
    /// Bytes that wait now.
    pub backlog: u64,
}

/// A line of `tc -s -j qdisc show`.
#[derive(Deserialize)]
struct Queue {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    handle: String,
    #[serde(default)]
    dev: String,
    #[serde(default)]
    packets: u64,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    drops: u64,
    #[serde(default)]
    backlog: u64,
}

impl Layout {
    /// What the switch has counted, by port and then by level, 0 first.
    ///
    /// Whatever else wants to run goes first: `tc` takes 2 ms of a core, which would be in the tail of the
    /// latencies of hosts that share it.
    ///
    /// # Errors
    ///
    /// `tc` fails.
    pub fn counters(&self) -> Result<Vec<PortCounters>, Error> {
        let arguments = ["-s", "-j", "qdisc", "show"];
        let mut enter: Vec<OsString> = vec![Tool::Chrt.find()?.into()];
        enter.extend(["--idle", "0"].map(OsString::from));
        enter.extend(self.enter_switch());
        let text = Tool::Tc.run("switch", &enter, &arguments, "")?;
        parse(&text).map_err(|error| {
            let command = format!("tc {}", arguments.join(" "));
            let problem = error.to_string();
            Error::Fabric(Refusal::Strange { place: "switch".to_owned(), command, problem })
        })
    }
}

fn parse(text: &str) -> Result<Vec<PortCounters>, serde_json::Error> {
    let queues: Vec<Queue> = serde_json::from_str(text)?;
    let mut counters: Vec<_> = queues
        .iter()
        .filter(|queue| queue.kind == "bfifo")
        .filter_map(|queue| {
            Some(PortCounters {
                node: Layout::behind(&queue.dev)?,
                level: level(&queue.handle)?,
                packets: queue.packets,
                bytes: queue.bytes,
                drops: queue.drops,
                backlog: queue.backlog,
            })
        })
        .collect();
    counters.sort_by_key(|queue| (queue.node, queue.level));
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_found_and_put_in_order() {
        let text = r#"[
            {"kind":"noqueue","handle":"0:","dev":"br0","root":true,"bytes":0,"packets":0},
            {"kind":"htb","handle":"1:","dev":"p2","root":true,"bytes":9,"packets":9},
            {"kind":"bfifo","handle":"17:","dev":"p2","parent":"1:17","options":{"limit":1000000},
             "bytes":216,"packets":2,"drops":1,"overlimits":0,"requeues":0,"backlog":98,"qlen":1},
            {"kind":"bfifo","handle":"10:","dev":"p2","bytes":5,"packets":1,"drops":0,"backlog":0},
            {"kind":"bfifo","handle":"10:","dev":"p1","bytes":0,"packets":0,"drops":0,"backlog":0}]"#;
        let counters = parse(text).unwrap();
        let order: Vec<_> = counters.iter().map(|queue| (queue.node, queue.level)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (1, 7)]);
        let high =
            PortCounters { node: 1, level: 7, packets: 2, bytes: 216, drops: 1, backlog: 98 };
        assert_eq!(counters[2], high);
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        assert!(parse("").is_err() && parse("Error").is_err());
    }
}
