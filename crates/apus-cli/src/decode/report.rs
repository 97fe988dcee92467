//! What do the packets of a capture say together?

use std::path::Path;

use apus_decode::{Decoder, Error, Rpc, Skipped, Summary, duration, json as decoded};
use apus_lab::result::{Figure, Outcome, Row, Table};
use apus_wire::Profile;
use serde_json::{Map, Value, json};

use super::Arguments;
use crate::failure::Failure;

/// What there is to say at the end.
pub(super) struct Report {
    summary: Summary,
    rpcs: Vec<Rpc>,
    skipped: Skipped,
    trouble: Option<Error>,
    filtered: bool,
    with_packets: bool,
}

/// An outcome with nothing in it, as an object.
fn outcome(arguments: &Arguments) -> Map<String, Value> {
    let types: Vec<String> = arguments.types.iter().map(ToString::to_string).collect();
    let rpcs: Vec<String> = arguments.rpc.iter().map(ToString::to_string).collect();
    let config = [
        ("file", json!(arguments.file.display().to_string())),
        ("rpc", json!(rpcs)),
        ("type", json!(types)),
        ("port", json!(arguments.port)),
        ("summary", json!(arguments.summary)),
    ];
    let config = config.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    match serde_json::to_value(Outcome::new("decode", config)) {
        Ok(Value::Object(object)) => object,
        other => unreachable!("an outcome is an object: {other:?}"),
    }
}

/// The beginning of the JSON object, up to the packets, which may be too many to be kept.
pub(super) fn head(arguments: &Arguments) -> String {
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
        trouble: Option<Error>,
        arguments: &Arguments,
    ) -> Self {
        let rpcs = summary.rpcs(decoder.rpcs()).cloned().collect();
        let Arguments { rpc, types, port, summary: only_summary, .. } = arguments;
        let filtered = !(rpc.is_empty() && types.is_empty() && port.is_empty());
        let skipped = decoder.skipped().clone();
        Self { summary, rpcs, skipped, trouble, filtered, with_packets: !only_summary }
    }

    /// The end of the JSON object.
    pub(super) fn tail(&self) -> String {
        let rows: Vec<Row> = self.rows();
        let rpcs: Vec<String> = self.rpcs.iter().map(|rpc| decoded::rpc(rpc).to_string()).collect();
        let times = self.summary.times(&self.rpcs).map(|times| {
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

    /// One row for each type.
    fn rows(&self) -> Vec<Row> {
        let row = |(name, of_type): (apus_decode::Type, apus_decode::OfType)| {
            Row::new(&name.to_string())
                .with("packets", Figure::Count(of_type.packets))
                .with("bytes", Figure::Count(of_type.bytes))
                .with("retransmitted", Figure::Count(of_type.retransmitted))
        };
        self.summary.types().map(row).collect()
    }

    /// Tables of types and RPCs.
    pub(super) fn text(&self) -> String {
        let mut text = self.title() + "\n";
        if self.summary.packets() > 0 {
            text += &format!("\n{}\n", types(&self.summary));
        }
        if !self.rpcs.is_empty() {
            text += &format!("\n{}\n", rpcs(self.rpcs_in_words(), &self.rpcs));
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

    fn rpcs_in_words(&self) -> String {
        let count = self.rpcs.len();
        match self.summary.times(&self.rpcs) {
            None => format!("{count} RPCs, none of them with its request and all of its response"),
            Some(times) => format!(
                "{count} RPCs; of {}, the time from the request to the end of the response: p50 {}, p99 {}, \
                 longest {}",
                times.rpcs,
                duration(times.p50),
                duration(times.p99),
                duration(times.max)
            ),
        }
    }

    /// What a reader has to know, damage aside.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (link, records) in &self.skipped.unknown_links {
            notes.push(format!(
                "{records} records of link type {link} were not read: apus does not know it"
            ));
        }
        let others = self.skipped.others;
        if self.summary.packets() == 0 && !self.filtered && others > 0 {
            notes.push(format!(
                "none of {others} records is a packet of apus or of the kernel module; `--port 4000` takes \
                 whatever goes over that UDP port for one"
            ));
        }
        if self.summary.packets() == 0 && self.filtered {
            notes.push("no packet fits what was asked for".to_owned());
        }
        notes
    }

    fn all_notes(&self) -> Vec<String> {
        let mut notes = self.notes();
        notes.extend(self.trouble.as_ref().map(ToString::to_string));
        notes
    }

    /// Whether the capture was read to its end.
    ///
    /// # Errors
    ///
    /// It is damaged or cut off: where. What came before it has been shown.
    pub(super) fn verdict(self, path: &Path) -> Result<(), Failure> {
        let Some(error) = self.trouble else { return Ok(()) };
        let shown =
            if self.summary.packets() == 0 { "" } else { "\nWhat came before that is shown." };
        Err(Failure::Work(format!("{}: {error}{shown}", path.display())))
    }
}

fn types(summary: &Summary) -> Table {
    let line = |(name, of_type): (apus_decode::Type, apus_decode::OfType)| {
        let again = match of_type.retransmitted {
            0 => String::new(),
            again => again.to_string(),
        };
        vec![name.to_string(), of_type.packets.to_string(), of_type.bytes.to_string(), again]
    };
    Table {
        title: "by type".to_owned(),
        header: ["", "packets", "bytes", "retransmitted"].map(str::to_owned).to_vec(),
        lines: summary.types().map(line).collect(),
    }
}

fn rpcs(title: String, rpcs: &[Rpc]) -> Table {
    let header = [
        "rpc",
        "client",
        "server",
        "request",
        "response",
        "packets",
        "grants",
        "resends",
        "again",
        "responds after",
        "done after",
        "end",
    ];
    Table {
        title,
        header: header.map(str::to_owned).to_vec(),
        lines: rpcs.iter().map(line).collect(),
    }
}

fn line(rpc: &Rpc) -> Vec<String> {
    let known =
        |bytes: Option<u32>| bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
    let some = |count: u64| if count == 0 { String::new() } else { count.to_string() };
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
        end(rpc).to_owned(),
    ]
}

/// How an RPC ended, as far as the capture shows it.
fn end(rpc: &Rpc) -> &'static str {
    match rpc {
        Rpc { response, .. } if response.complete.is_some() => "complete",
        Rpc { refused: Some(_), .. } => "refused",
        Rpc { unreachable: Some(_), .. } => "unreachable",
        Rpc { response, .. } if response.first.is_some() => "response begun",
        Rpc { request, .. } if request.complete.is_some() => "request sent",
        Rpc { request, .. } if request.first.is_some() => "request begun",
        _ => "not seen",
    }
}
