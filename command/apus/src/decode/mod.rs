//! `apus decode`: the packets of a capture as text or JSON.
//!
//! ```text
//!   arguments   the capture, the filters and the form of the output
//!   report      output around the packets: head, summary, notes
//! ```

mod arguments;
mod report;

pub(crate) use arguments::DecodeArguments;

use std::fs::File;
use std::io::{self, BufWriter, Read, StdoutLock, Write};
use std::path::Path;

use apus_decode::{
    CapturedPacket, CapturedRpc, Decoder, KeyLog, Links, PacketFilter, Summary, json,
};

use self::report::Report;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Decodes a capture and prints it.
///
/// # Errors
///
/// The capture cannot be read, or is damaged; packets before the damage are printed.
pub(crate) fn run(arguments: &DecodeArguments) -> Result<(), Failure> {
    let path = &arguments.file;
    let filter = arguments.filter();
    let keys = arguments.keys.as_deref().map(key_log).transpose()?;
    let input = Input::open(path)?;
    // Links to later packets are available only after a first pass. The second pass reports
    // errors.
    let later = match &input {
        Input::File(_) if !arguments.summary => {
            decoder(Input::open(path)?, path, &filter, keys.as_ref())
                .map_or_else(|_| Vec::new(), Decoder::into_rpcs)
        }
        _ => Vec::new(),
    };
    let live = matches!(input, Input::Stream(_));
    let decoder = decoder(input, path, &filter, keys.as_ref())?;
    let mut printer = Printer::new(arguments, live);
    let report = printer.decode(decoder, &filter, &later)?;
    printer.finish(&report)?;
    report.verdict(path)
}

/// A source of records.
enum Input {
    /// A regular file, readable twice.
    File(File),
    /// Standard input or a pipe, readable once.
    Stream(Box<dyn Read + Send>),
}

impl Input {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stream(Box::new(io::stdin())));
        }
        let opened = File::open(path).and_then(|file| {
            let kind = file.metadata()?.file_type();
            if kind.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(if kind.is_file() { Self::File(file) } else { Self::Stream(Box::new(file)) })
        });
        opened.map_err(|error| Failure::Argument {
            argument: "<FILE>".to_owned(),
            problem: format!("{}: {error}; name a capture that can be read", path.display()),
        })
    }
}

/// Reads a key log file.
fn key_log(path: &Path) -> Result<KeyLog, Failure> {
    let refused = |problem: String| Failure::Argument {
        argument: "--keys".to_owned(),
        problem: format!("{}: {problem}", path.display()),
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| refused(format!("{error}; name a key log file that can be read")))?;
    KeyLog::parse(&text).map_err(|error| {
        refused(format!("{error}; name a file that SSLKEYLOGFILE has had written"))
    })
}

fn decoder(
    input: Input,
    path: &Path,
    filter: &PacketFilter,
    keys: Option<&KeyLog>,
) -> Result<Decoder, Failure> {
    let decoder = match input {
        Input::File(file) => Decoder::open(file, &filter.ports),
        Input::Stream(stream) => Decoder::open(stream, &filter.ports),
    };
    let decoder = decoder.map_err(|error| Failure::of(&path.display().to_string(), &error))?;
    Ok(match keys {
        Some(keys) => decoder.with_keys(keys.clone()),
        None => decoder,
    })
}

/// Prints packets to standard output, in the requested form.
struct Printer<'a> {
    arguments: &'a DecodeArguments,
    to: BufWriter<StdoutLock<'static>>,
    /// Whether to flush every packet, because the capture is still being written.
    live: bool,
    /// Width of the widest pair of addresses printed so far, used to align the next column.
    width: usize,
    /// Number of packets printed yet.
    packets: u64,
}

impl<'a> Printer<'a> {
    fn new(arguments: &'a DecodeArguments, live: bool) -> Self {
        let to = BufWriter::new(io::stdout().lock());
        Self { arguments, to, live, width: 0, packets: 0 }
    }

    /// Decodes the whole capture and prints the matching packets.
    fn decode(
        &mut self,
        mut decoder: Decoder,
        filter: &PacketFilter,
        later: &[CapturedRpc],
    ) -> Result<Report, Failure> {
        let mut summary = Summary::default();
        let mut damage = None;
        if self.arguments.json {
            output::stdout_result(self.to.write_all(report::head(self.arguments).as_bytes()))?;
        }
        while let Some(next) = decoder.next() {
            let packet = match next {
                Ok(packet) => packet,
                Err(error) => {
                    damage = Some(error);
                    break;
                }
            };
            if !filter.matches(&packet) {
                continue;
            }
            summary.add(&packet);
            if !self.arguments.summary {
                let rpcs = if later.is_empty() { decoder.rpcs() } else { later };
                output::stdout_result(self.packet(&packet, links(&packet, rpcs)))?;
            }
        }
        output::stdout_result(self.to.flush())?;
        Ok(Report::new(summary, &decoder, damage, self.arguments))
    }

    fn packet(&mut self, packet: &CapturedPacket, links: Links) -> io::Result<()> {
        self.packets += 1;
        if self.arguments.json {
            let separator = if self.packets == 1 { "" } else { ",\n" };
            write!(self.to, "{separator}{}", json::packet(packet, links))?;
        } else {
            let number = match packet.part {
                (_, 1) => packet.number.to_string(),
                (part, _) => format!("{}.{part}", packet.number),
            };
            let seconds = packet.since_start as f64 / 1e9;
            let (from, to) = packet.addresses();
            let ends = format!("{from} > {to}");
            self.width = self.width.max(ends.len());
            let width = self.width;
            writeln!(
                self.to,
                "{number:>7} {seconds:>12.6}  {ends:width$}  {}",
                packet.describe(links)
            )?;
        }
        if self.live { self.to.flush() } else { Ok(()) }
    }

    fn finish(&mut self, report: &Report) -> Result<(), Failure> {
        let text = match (self.arguments.json, self.arguments.summary) {
            (true, _) => report.tail(),
            (false, true) => report.text(),
            (false, false) => {
                report.notes().iter().for_each(|note| output::note(note));
                return Ok(());
            }
        };
        output::stdout_result(self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush()))
    }
}

/// Returns the numbers of the packets referenced by a packet.
fn links(packet: &CapturedPacket, rpcs: &[CapturedRpc]) -> Links {
    let rpc =
        packet.note.as_ref().and_then(|note| Some((rpcs.get(note.rpc.0)?, note.message_kind)));
    rpc.map_or_else(Links::default, |(rpc, half)| rpc.links(half, packet.number))
}
