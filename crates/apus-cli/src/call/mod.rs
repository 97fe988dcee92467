//! What does a service answer?

mod advice;
mod peer;
mod report;
mod request;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use self::peer::Peer;
use self::report::{Call, Report};
use self::request::Source;
use crate::address::Address;
use crate::configuration::Configuration;
use crate::destination::Destination;
use crate::driver::Driver;
use crate::failure::Failure;
use crate::output;
use crate::path::Path;
use crate::tracing::Tracing;

/// Call a service by hand: what it replies, how long that takes, and what went wrong if it did
///
/// Requests go one after the other. Each reply is compared with its request: from an echo service like
/// `apus serve` it comes back identical, from another one it differs, and both are fine. After a call
/// that failed nothing more is sent, unless --keep-going is given. The first call takes longer than
/// others: it gets to know the peer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus call 127.0.0.1:4000 --size 100
  apus call localhost:4000 --size 1000000 --count 100 --path udp
  apus call localhost:4000 --count 1000 --quiet --trace all --trace-file client.tt
  apus call [::1]:4000 --file request.bin --output reply.bin --json
  apus call 10.0.0.1:4000 --driver raw --size 1000000")]
pub(crate) struct Arguments {
    /// The service: HOST:PORT
    #[arg(value_name = "ADDR", value_parser = Address::to_call)]
    address: Address,
    /// Send requests of this many bytes, each with bytes of its own: 1 to 67108864
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = request::size,
          allow_negative_numbers = true)]
    size: usize,
    /// Send what is in this file
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    file: Option<PathBuf>,
    /// How often to call: 1 to 10000000
    #[arg(long, value_name = "CALLS", default_value = "1", value_parser = count,
          allow_negative_numbers = true)]
    count: u64,
    /// Give a call up after this many seconds: 0.001 to 86400; without it, when the peer is silent for
    /// a second
    #[arg(long, value_name = "SECONDS", value_parser = timeout, allow_negative_numbers = true)]
    timeout: Option<Duration>,
    /// Write the reply to this file; with --count the last one
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Go on after a call that failed
    #[arg(long)]
    keep_going: bool,
    /// What carries packets: what the service has, too
    #[arg(long, value_name = "DRIVER", value_enum, default_value_t = Driver::Udp)]
    driver: Driver,
    /// Which way messages go to peers on this host
    #[arg(long, value_name = "PATH", value_enum, default_value_t = Path::Auto)]
    path: Path,
    #[command(flatten)]
    configuration: Configuration,
    #[command(flatten)]
    tracing: Tracing,
    /// Do not say anything about single calls that did not fail
    #[arg(long)]
    quiet: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

fn count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=10_000_000).contains(count));
    count.ok_or_else(|| "there are 1 to 10000000 calls; try 10".to_owned())
}

fn timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a call may take 0.001 to 86400 seconds; try 0.5".to_owned())
}

/// Makes the calls and says what came of them.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let source = match &arguments.file {
        Some(path) => Source::file(path)?,
        None => Source::Drawn(arguments.size),
    };
    let given = if arguments.file.is_some() { "--file" } else { "--size" };
    arguments.driver.check_size(given, source.size())?;
    let output = arguments.output.as_deref().map(|path| Destination::open("--output", path));
    let output = output.transpose()?;
    arguments.tracing.begin()?;
    let mut peer = peer(arguments)?;
    let mut report = Report::new(arguments, source.size());
    let mut last = None;
    for number in 1..=arguments.count {
        let request = source.request(number);
        let (result, time) = peer.call(&request);
        let call = Call::new(number, time, &request, &result);
        if !arguments.json && !arguments.quiet && result.is_ok() {
            output::line(&call.text(peer.address()))?;
        }
        let failed = result.is_err();
        if failed && arguments.keep_going {
            output::note(&call.text(peer.address()));
        }
        report.add(call);
        last = result.ok().or(last);
        if failed && !arguments.keep_going {
            break;
        }
    }
    arguments.tracing.end()?;
    if let (Some(output), Some(reply)) = (output, last) {
        output.fill(&reply)?;
    }
    if arguments.json {
        output::line(&report.outcome().json())?;
    } else if arguments.count > 1 {
        output::line(&report.text())?;
    }
    report.verdict(peer.address())
}

/// Finds the service's addresses and makes an endpoint that can call them.
fn peer(arguments: &Arguments) -> Result<Peer, Failure> {
    let name = arguments.address.as_str();
    let addresses = arguments.address.resolve().map_err(|error| {
        let help = "Is the name right? An IP address needs no name service.";
        Failure::Work(format!("resolve {name}: {error}\n{help}"))
    })?;
    let settings = arguments.path.apply(arguments.configuration.read()?.builder());
    let (here, addresses) = arguments.driver.client_of(addresses);
    let settings = arguments.driver.build(settings, here);
    let endpoint = settings.client().map_err(|error| Failure::Work(error.to_string()))?;
    Ok(Peer::new(endpoint, addresses, arguments.timeout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::Config;
    use clap::Command;

    #[test]
    fn help_says_what_the_configuration_says() {
        let help = Arguments::augment_args(Command::new("call")).render_long_help().to_string();
        let config = Config::default();
        assert!(help.contains(&format!("1 to {}", config.max_message())), "{help}");
        assert_eq!(config.timeout_usecs(), 1_000_000, "silent for a second");
    }

    #[test]
    fn counts_and_times_are_in_range() {
        assert_eq!((count("1"), count("10000000")), (Ok(1), Ok(10_000_000)));
        for wrong in ["0", "10000001", "-1", "", "many"] {
            assert!(count(wrong).unwrap_err().contains("try 10"), "{wrong}");
        }
        assert_eq!(timeout("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "inf", "86401", "1s"] {
            assert!(timeout(wrong).unwrap_err().contains("try 0.5"), "{wrong}");
        }
    }
}
