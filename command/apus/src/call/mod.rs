//! `apus call`: RPCs by hand.
//!
//! ```text
//!   arguments   content and number of requests, and format of the replies
//!   request     the bytes of each request
//!   service     the service under all addresses of its name
//!   route       whether the calls went through shared memory, and why not
//!   report      each call and its summary, as text and JSON
//!   advice      remedies for a failed call
//! ```

mod advice;
mod arguments;
mod report;
mod request;
mod route;
mod service;

pub(crate) use arguments::CallArguments;

use self::report::{Call, Report};
use self::request::Source;
use self::route::Permission;
use self::service::Service;
use apus_command_line::destination::Destination;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Makes the calls and prints their results.
///
/// # Errors
///
/// An argument is invalid, the name cannot be resolved, or a call failed.
pub(crate) fn run(arguments: &CallArguments) -> Result<(), Failure> {
    let source = match &arguments.file {
        Some(path) => Source::file(path)?,
        None => Source::Random(arguments.size),
    };
    let given = if arguments.file.is_some() { "--file" } else { "--size" };
    arguments.driver.check_size(given, source.size())?;
    let output = arguments.output.as_deref().map(|path| Destination::open("--output", path));
    let output = output.transpose()?;
    arguments.tracing.begin()?;
    let mut service = service(arguments)?;
    let mut report = Report::new(arguments, source.size());
    let mut last = None;
    for number in 1..=arguments.count {
        let request = source.request(number);
        let (result, time) = service.call(&request);
        let facts = service.circumstances(time, result.is_err());
        let call = Call::new(number, &request, &result, &facts);
        if !arguments.json && !arguments.quiet && result.is_ok() {
            output::line(&call.text(service.address()))?;
        }
        let failed = result.is_err();
        if failed && arguments.keep_going {
            output::note(&call.text(service.address()));
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
        output::line(&report.outcome(&service.route()).json())?;
    } else if arguments.count > 1 {
        output::line(&report.text())?;
    }
    report.verdict(service.address())
}

/// Resolves the service's addresses and opens an endpoint that can call them.
fn service(arguments: &CallArguments) -> Result<Service, Failure> {
    let name = arguments.address.as_str();
    let addresses = arguments.address.resolve().map_err(|error| {
        let help = "Check the name. An IP address needs no name service.";
        Failure::Work(format!("resolve {name}: {error}\n{help}"))
    })?;
    let mut settings = arguments.configuration.read()?;
    arguments.sealing.apply(&mut settings)?;
    let builder = arguments.path.apply(apus::Endpoint::builder().settings(&settings));
    let (here, addresses) = arguments.driver.client_binding(addresses);
    let builder = arguments.driver.apply(builder, here);
    let endpoint = builder.client().map_err(|error| Failure::Work(error.to_string()))?;
    let has_path = endpoint.has_local_path();
    let permission = Permission::new(arguments.driver, arguments.path, &settings, has_path);
    Ok(Service::new(endpoint, permission, addresses, arguments.timeout))
}
