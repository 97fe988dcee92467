//! Packet counters of the switch.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::error::FabricError;
use super::layout::Layout;
use super::shaping::level;
use super::tool::Tool;
use apus_measure::error::Error;

/// Counters of one queue of the switch: a port and a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// Host that the port leads to, from 0.
    pub node: usize,
    /// Level; 7 is sent first.
    pub level: u8,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, Ethernet headers of 14 bytes included.
    pub bytes: u64,
    /// Packets dropped because the queue was full.
    pub drops: u64,
    /// Bytes in the queue now.
    pub backlog: u64,
}

/// An element of the output of `tc -s -j qdisc show`.
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
    /// Returns the counters of the switch, ordered by port and level.
    ///
    /// `tc` runs at idle priority: it uses 2 ms of a core, which would lengthen the latency tail of
    /// hosts on the same core.
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
            Error::from(FabricError::Strange { place: "switch".to_owned(), command, problem })
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
    fn queues_are_parsed_and_ordered() {
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
    fn text_that_is_not_a_list_is_an_error() {
        assert!(parse("").is_err() && parse("Error").is_err());
    }
}
