//! The compiled part of the Python package `apus`: endpoints, messages and requests.
//!
//! `apus/_apus.pyi` documents each class; this crate only translates types. Invariants:
//!
//! - **PY-1** The GIL is not held while a function waits or sends.
//! - **PY-2** A function that waits returns to Python at intervals to handle signals.
//! - **PY-3** After a fork, the resources of the parent's endpoints are neither used nor freed: the
//!   threads that hold their locks do not exist in the child.

mod address;
mod buffers;
mod completion;
mod endpoint;
mod errors;
mod fork;
mod message;
mod options;
mod payload;
mod request;
mod signals;

use pyo3::prelude::*;

#[pymodule]
fn _apus(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<address::Address>()?;
    module.add_class::<completion::Completion>()?;
    module.add_class::<endpoint::Endpoint>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<request::Request>()?;
    module.add_function(wrap_pyfunction!(address::resolve, module)?)?;
    module.add_function(wrap_pyfunction!(request::reply_all, module)?)?;
    Ok(())
}
