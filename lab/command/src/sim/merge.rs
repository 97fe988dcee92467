//! `apus-lab sim merge`: one result from the parts of a sweep.

use std::path::PathBuf;

use apus_sweep::report::findings;
use apus_sweep::{MergeError, merge, write};
use clap::Args;

use apus_command_line::experiment::Results;
use apus_command_line::failure::Failure;

/// Put the results of the shards of a sweep together
///
/// `apus-lab sim run --out` writes the files. The result is that of a single process, except for
/// `packets_per_second`, which is measured where a point ran. The command fails, and names the
/// file, if a file belongs to another sweep, a point is missing, or a point has two results.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus-lab sim merge part-0.jsonl part-1.jsonl
  apus-lab sim merge part-0.jsonl part-1.jsonl --out all.jsonl --html all.html")]
pub(crate) struct MergeArguments {
    /// Files with points of the sweep
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Keep all points in this file, in their order
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    results: Results,
}

/// Merges the points and shows the result.
pub(crate) fn run(arguments: &MergeArguments) -> Result<(), Failure> {
    let results = arguments.results.open()?;
    let records = merge(&arguments.files).map_err(failure)?;
    if let Some(path) = &arguments.out {
        write(path, &records).map_err(|error| Failure::Work(error.to_string()))?;
    }
    results.show(&findings(&records, &[]))
}

/// Maps an error to a failure: a file with other content is a wrong argument; missing points are an
/// incomplete sweep.
fn failure(error: MergeError) -> Failure {
    match error {
        MergeError::Different { .. } => Failure::Work(error.to_string()),
        MergeError::Missing { .. } => Failure::Work(format!(
            "{error}; run `apus-lab sim run` again with the same options and --out, and name that file too"
        )),
        error => Failure::Argument { argument: "FILE".to_owned(), problem: error.to_string() },
    }
}
