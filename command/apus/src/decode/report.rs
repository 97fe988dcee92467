//! The report on a whole capture: head and tail of the JSON object, tables by type and by RPC,
//! notes.

use std::path::Path;

use apus_decode::{
    CapturedRpc, Decoder, Error, SkippedRecords, Summary, duration, json as decoded,
};
use apus_report::result::{Figure, Outcome, Row, Table};
use apus_wire::Profile;
use serde_json::{Map, Value, json};

use super::arguments::DecodeArguments;
use apus_command_line::failure::Failure;

/// Summary of a capture read to its end.
pub(super) struct Report {
    summary: Summary,
    rpcs: Vec<CapturedRpc>,
    skipped: SkippedRecords,
    /// The error that ended the capture early.
    damage: Option<Error>,
    /// Whether the arguments filter packets.
    filtered: bool,
    /// Whether a key log is in use.
    has_keys: bool,
    /// Whether the JSON object contains the packets.
    with_packets: bool,
}

/// Returns an outcome without rows, as a JSON object.
fn outcome(arguments: &DecodeArguments) -> Map<String, Value> {
    let types: Vec<String> = arguments.types.iter().map(ToString::to_string).collect();
    let rpcs: Vec<String> = arguments.rpc.iter().map(ToString::to_string).collect();
    let config = [
        ("file", json!(arguments.file.display().to_string())),
        ("rpc", json!(rpcs)),
        ("type", json!(types)),
        ("port", json!(arguments.port)),
        ("keys", json!(arguments.keys.as_ref().map(|path| path.display().to_string()))),
        ("summary", json!(arguments.summary)),
    ];
    let config = config.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    match serde_json::to_value(Outcome::new("decode", config)) {
        Ok(Value::Object(object)) => object,
        other => unreachable!("an outcome is an object: {other:?}"),
    }
}

/// Returns the head of the JSON object, up to the packets. Packets are printed one by one, since
/// they may not fit into memory.
pub(super) fn head(arguments: &DecodeArguments) -> String {
    let mut text = "{".to_owned();
    for name in ["experiment", "version", "commit", "machine", "config"] {
        let value = &outcome(arguments)[name];
        text += &format!("\"{name}\":{value},\n");
    }
    if !arguments.summary {
        text += "\"packets\":[\n";
    }
    text
}

impl Report {
    pub(super) fn new(
        summary: Summary,
        decoder: &Decoder,
        damage: Option<Error>,
        arguments: &DecodeArguments,
    ) -> Self {
        let rpcs = summary.rpcs(decoder.rpcs()).cloned().collect();
        let DecodeArguments { rpc, types, port, summary: only_summary, .. } = arguments;
        let filtered = !(rpc.is_empty() && types.is_empty() && port.is_empty());
        let skipped = decoder.skipped().clone();
        let has_keys = arguments.keys.is_some();
        Self { summary, rpcs, skipped, damage, filtered, has_keys, with_packets: !only_summary }
    }

    /// Returns the end of the JSON object, after the packets.
    pub(super) fn tail(&self) -> String {
        let rows: Vec<Row> = self.rows();
        let rpcs: Vec<String> = self.rpcs.iter().map(|rpc| decoded::rpc(rpc).to_string()).collect();
        let times = self.summary.completion_times(&self.rpcs).map(|times| {
            let [p50, p99, max] = [times.p50, times.p99, times.max].map(decoded::micros);
            json!({ "rpcs": times.rpcs, "p50_us": p50, "p99_us": p99, "max_us": max })
        });
        let mut text = if self.with_packets { "\n],\n".to_owned() } else { String::new() };
        text += &format!("\"rpcs\":[\n{}\n],\n", rpcs.join(",\n"));
        text += &format!("\"rows\":{},\n", json!(rows));
        text += &format!("\"completion\":{},\n", json!(times));
        text += &format!("\"span_s\":{},\n", json!(self.summary.span() as f64 / 1e9));
        text += "\"ratios\":{},\n";
        text += &format!("\"notes\":{}}}\n", json!(self.all_notes()));
        text
    }

    /// Returns one row for each type of packet.
    fn rows(&self) -> Vec<Row> {
        let row = |(name, of_type): (apus_decode::PacketType, apus_decode::TypeCounts)| {
            Row::new(&name.to_string())
                .with("packets", Figure::Count(of_type.packets))
                .with("bytes", Figure::Count(of_type.bytes))
                .with("retransmitted", Figure::Count(of_type.retransmitted))
        };
        self.summary.types().map(row).collect()
    }

    /// Returns the tables by type and by RPC.
    pub(super) fn text(&self) -> String {
        let mut text = self.title() + "\n";
        if self.summary.packets() > 0 {
            text += &format!("\n{}\n", types(&self.summary));
        }
        if !self.rpcs.is_empty() {
            text += &format!("\n{}\n", rpcs(self.rpcs_title(), &self.rpcs));
        }
        for note in self.notes() {
            text += &format!("\nnote: {note}\n");
        }
        text
    }

    fn title(&self) -> String {
        let of = |profile| match self.summary.of_profile(profile) {
            0 => None,
            packets => Some(format!("{packets} packets of the {profile} profile")),
        };
        let parts: Vec<_> = [Profile::Udp, Profile::Kernel].into_iter().filter_map(of).collect();
        if parts.is_empty() {
            return "no packets".to_owned();
        }
        format!("{} in {}", parts.join(" and "), duration(self.summary.span()))
    }

    fn rpcs_title(&self) -> String {
        let count = self.rpcs.len();
        match self.summary.completion_times(&self.rpcs) {
            None => {
                format!("{count} RPCs, none captured from its request to the end of its response")
            }
            Some(times) => format!(
                "{count} RPCs; from the request to the end of the response, of {}: p50 {}, p99 {}, max {}",
                times.rpcs,
                duration(times.p50),
                duration(times.p99),
                duration(times.max)
            ),
        }
    }

    /// Returns notes on the capture for the reader, except for damage.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (link, records) in &self.skipped.unknown_links {
            notes.push(format!(
                "{records} records were skipped: apus does not know their link type {link}"
            ));
        }
        let others = self.skipped.others;
        if self.summary.packets() == 0 && !self.filtered && others > 0 {
            notes.push(format!(
                "none of {others} records is a packet of apus or of the kernel module; `--port 4000` decodes \
                 everything on that UDP port as apus"
            ));
        }
        let unopened = self.summary.unopened();
        if self.has_keys && unopened > 0 {
            notes.push(format!(
                "{unopened} sealed packets were not opened: their handshake is not in the capture, or its secrets not in the \
                 file of --keys"
            ));
        }
        if self.summary.packets() == 0 && self.filtered {
            notes.push("no packet passes --rpc, --type and --port".to_owned());
        }
        notes
    }

    fn all_notes(&self) -> Vec<String> {
        let mut notes = self.notes();
        notes.extend(self.damage.as_ref().map(ToString::to_string));
        notes
    }

    /// Succeeds if the capture was read to its end.
    ///
    /// # Errors
    ///
    /// The capture is damaged or truncated; the message contains the position.
    pub(super) fn verdict(self, path: &Path) -> Result<(), Failure> {
        let Some(error) = self.damage else { return Ok(()) };
        let printed =
            if self.summary.packets() == 0 { "" } else { "\nThe packets before that are printed." };
        Err(Failure::Work(format!("{}: {error}{printed}", path.display())))
    }
}

/// Returns a count as text; empty for zero, so that nonzero counts stand out in the table.
fn some(count: u64) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

fn types(summary: &Summary) -> Table {
    let line = |(name, of_type): (apus_decode::PacketType, apus_decode::TypeCounts)| {
        let retransmitted = some(of_type.retransmitted);
        let (packets, bytes) = (of_type.packets.to_string(), of_type.bytes.to_string());
        vec![name.to_string(), packets, bytes, retransmitted]
    };
    Table {
        title: "packets by type".to_owned(),
        header: ["type", "packets", "bytes", "retransmitted"].map(str::to_owned).to_vec(),
        lines: summary.types().map(line).collect(),
    }
}

fn rpcs(title: String, rpcs: &[CapturedRpc]) -> Table {
    let header = [
        "rpc",
        "client",
        "server",
        "request",
        "response",
        "packets",
        "grants",
        "resends",
        "retransmitted",
        "response after",
        "complete after",
        "state",
    ];
    Table {
        title,
        header: header.map(str::to_owned).to_vec(),
        lines: rpcs.iter().map(rpc_line).collect(),
    }
}

fn rpc_line(rpc: &CapturedRpc) -> Vec<String> {
    let known =
        |bytes: Option<u32>| bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
    let time = |time: Option<i64>| time.map_or_else(String::new, duration);
    let (request, response) = (&rpc.request, &rpc.response);
    vec![
        rpc.id.to_string(),
        rpc.client.to_string(),
        rpc.server.to_string(),
        known(request.length),
        known(response.length),
        rpc.packets.to_string(),
        some(request.grants + response.grants),
        some(request.resends + response.resends),
        some(request.retransmitted + response.retransmitted),
        time(rpc.response_time()),
        time(rpc.completion_time()),
        state(rpc).to_owned(),
    ]
}

/// Returns the last state of an RPC in the capture.
fn state(rpc: &CapturedRpc) -> &'static str {
    match rpc {
        CapturedRpc { response, .. } if response.complete.is_some() => "complete",
        CapturedRpc { refused: Some(_), .. } => "refused",
        CapturedRpc { unreachable: Some(_), .. } => "unreachable",
        CapturedRpc { response, .. } if response.first.is_some() => "response begun",
        CapturedRpc { request, .. } if request.complete.is_some() => "request sent",
        CapturedRpc { request, .. } if request.first.is_some() => "request begun",
        _ => "not seen",
    }
}
