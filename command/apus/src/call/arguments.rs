//! CallArguments of `apus call`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::request;
use crate::address::Address;
use crate::path::Path;
use crate::sealing::Sealing;
use crate::tracing::Tracing;
use apus_command_line::configuration::Configuration;
use apus_command_line::driver::Driver;

/// Call a service by hand, and compare each reply with its request
///
/// Sends requests one after another, and prints the size and the time of each reply. An echo
/// service such as `apus serve` returns every request unchanged; any other service returns
/// something else, and that is no failure. A call that fails is printed with its cause and with
/// what to do about it, and ends the command unless --keep-going is given. The first call takes
/// longer than the others, because client and server do not know each other yet.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus call 127.0.0.1:4000 --size 100
  apus call 127.0.0.1:4000 --size 0
  apus call localhost:4000 --size 1000000 --count 100 --path udp
  apus call localhost:4000 --count 1000 --quiet --trace all --trace-file client.tt
  apus call [::1]:4000 --file request.bin --output reply.bin --json
  apus call 10.0.0.1:4000 --driver raw --size 1000000")]
pub(crate) struct CallArguments {
    /// Address of the service, HOST:PORT
    #[arg(value_name = "ADDR", value_parser = Address::parse_remote)]
    pub(super) address: Address,
    /// Size of each request in bytes: 0 to 67108864, at least 1 with --driver raw. Its content is
    /// random and differs from call to call
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = request::parse_size,
          allow_negative_numbers = true)]
    pub(super) size: usize,
    /// Send the content of this file instead
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub(super) file: Option<PathBuf>,
    /// Number of calls: 1 to 10000000
    #[arg(long, value_name = "CALLS", default_value = "1", value_parser = count,
          allow_negative_numbers = true)]
    pub(super) count: u64,
    /// Fail a call after this many seconds: 0.001 to 86400. Without this option a call fails when
    /// the peer has been silent for a second, or after 60 s (`call_timeout_msecs` in --config)
    #[arg(long, value_name = "SECONDS", value_parser = timeout, allow_negative_numbers = true)]
    pub(super) timeout: Option<Duration>,
    /// Write the reply to this file; with --count, the last reply
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Continue after a call that failed
    #[arg(long)]
    pub(super) keep_going: bool,
    /// Driver that carries packets; the service must have the same
    #[arg(long, value_name = "DRIVER", value_enum, default_value_t = Driver::Udp)]
    pub(super) driver: Driver,
    /// How messages reach peers on this host
    #[arg(long, value_name = "PATH", value_enum, default_value_t = Path::Auto)]
    pub(super) path: Path,
    #[command(flatten)]
    pub(super) configuration: Configuration,
    #[command(flatten)]
    pub(super) sealing: Sealing,
    #[command(flatten)]
    pub(super) tracing: Tracing,
    /// Do not print calls that succeeded
    #[arg(long)]
    pub(super) quiet: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(super) json: bool,
}

fn count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=10_000_000).contains(count));
    count.ok_or_else(|| "the number of calls is 1 to 10000000; try 10".to_owned())
}

fn timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a call may take 0.001 to 86400 seconds; try 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::Config;
    use clap::Command;

    #[test]
    fn the_help_states_the_limits_of_the_configuration() {
        let help = CallArguments::augment_args(Command::new("call")).render_long_help().to_string();
        let config = Config::default();
        assert!(help.contains(&format!("0 to {}", config.max_message())), "{help}");
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
