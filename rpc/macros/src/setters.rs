//! Setters of the options that all calls of a client share.

use crate::model::Service;
use proc_macro2::TokenStream;
use quote::quote;

/// Generates the setters of call options, common to the clients for tasks and for threads.
pub(crate) fn option_setters(service: &Service) -> TokenStream {
    let (krate, visibility) = (&service.krate, &service.item.vis);
    quote! {
        /// Sets the timeout of calls. A call made by a handler also ends with the call that the
        /// handler serves.
        #[must_use]
        #visibility fn with_timeout(mut self, timeout: ::core::time::Duration) -> Self {
            self.options.timeout = ::core::option::Option::Some(timeout);
            self
        }

        /// Sets the metadata sent with each call.
        #[must_use]
        #visibility fn with_metadata(mut self, metadata: #krate::Metadata) -> Self {
            self.options.metadata = metadata;
            self
        }
    }
}
