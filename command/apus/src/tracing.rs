//! Time trace arguments of commands that open endpoints.

use std::path::PathBuf;

use apus::trace::{self, Sampling};
use clap::Args;

use apus_command_line::failure::Failure;

/// Time traces of a command, and the file for them.
#[derive(Debug, Args)]
pub(crate) struct Tracing {
    /// RPCs to record in time traces: `off`, `sampled` (one RPC in 256), `sampled=PERIOD` (one RPC
    /// in PERIOD), or `all`
    #[arg(long = "trace", value_name = "WHAT", default_value_t = Sampling::default())]
    trace_sampling: Sampling,
    /// Write the time trace to this file when the command ends: the last 16384 records of each
    /// thread
    #[arg(long = "trace-file", value_name = "FILE")]
    trace_file: Option<PathBuf>,
}

impl Tracing {
    /// Starts recording. Must be called before the first endpoint is opened.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if a file is given but recording is off.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        if self.trace_file.is_some() && self.trace_sampling == Sampling::Off {
            let problem = "nothing is recorded with --trace off; try --trace all".to_owned();
            return Err(Failure::Argument { argument: "--trace-file".to_owned(), problem });
        }
        trace::set_sampling(self.trace_sampling);
        Ok(())
    }

    /// Writes the file, if one was requested.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn end(&self) -> Result<(), Failure> {
        let Some(file) = &self.trace_file else { return Ok(()) };
        trace::freeze(trace::FreezeReason::Demand);
        trace::dump_to(file).map_err(|error| Failure::of("write the trace", &error))
    }
}
