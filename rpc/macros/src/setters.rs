//! Setters of the options that all calls of a client share.

use crate::model::Service;
use proc_macro2::TokenStream;
use quote::quote;

/// The methods with which the clients for tasks and for threads set the options of their calls.
pub(crate) fn option_setters(service: &Service) -> TokenStream {
    let (krate, visibility) = (&service.krate, &service.item.vis);
    quote! {
        /// Sets the time after which a call fails. A call that a handler makes also ends with the call that it serves.
        #[must_use]
        #visibility fn with_timeout(mut self, timeout: ::core::time::Duration) -> Self {
            self.options.timeout = ::core::option::Option::Some(timeout);
            self
        }

        /// Sets the metadata that is sent with each call.
        #[must_use]
        #visibility fn with_metadata(mut self, metadata: #krate::Metadata) -> Self {
            self.options.metadata = metadata;
            self
        }
    }
}
