//! The functions in a Ballista cluster: its executors call them, its scheduler and its clients plan them.

use crate::functions::functions;
use crate::models::Models;
use ballista::prelude::{SessionConfigExt as _, SessionContextExt as _};
use ballista_core::extension::ballista_scalar_functions;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::default_session_builder;
use ballista_executor::executor_process::ExecutorProcessConfig;
use ballista_scheduler::config::SchedulerConfig;
use datafusion::error::Result;
use datafusion::execution::{FunctionRegistry as _, SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;

/// An executor that calls the functions on the device of `models`.
///
/// It is to be the only one of that device, with two vcores at least, so that the device has work while the next pictures
/// are read.
#[must_use]
pub fn executor(config: ExecutorProcessConfig, models: &Models) -> ExecutorProcessConfig {
    let mut registry = match config.override_function_registry.as_deref() {
        Some(other) => BallistaFunctionRegistry {
            scalar_functions: other.scalar_functions.clone(),
            aggregate_functions: other.aggregate_functions.clone(),
            window_functions: other.window_functions.clone(),
            higher_order_functions: other.higher_order_functions.clone(),
        },
        None => BallistaFunctionRegistry::default(),
    };
    // Ballista plans with these, and leaves those of lists out of its executors' registry.
    for function in ballista_scalar_functions() {
        registry.scalar_functions.entry(function.name().to_owned()).or_insert(function);
    }
    for function in functions(Some(models)) {
        registry.scalar_functions.insert(function.name().to_owned(), Arc::new(function));
    }
    ExecutorProcessConfig { override_function_registry: Some(Arc::new(registry)), ..config }
}

/// A scheduler that plans the functions. It needs neither device nor networks.
#[must_use]
pub fn scheduler(config: SchedulerConfig) -> SchedulerConfig {
    let build = config.override_session_builder.clone().unwrap_or_else(|| Arc::new(default_session_builder));
    config.with_override_session_builder(Arc::new(move |session| -> Result<SessionState> {
        let mut state = build(session)?;
        for function in functions(None) {
            state.register_udf(Arc::new(function))?;
        }
        Ok(state)
    }))
}

/// A client of the scheduler at `url`, such as `df://localhost:50050`, whose queries may call the functions.
///
/// Ballista's adaptive planner is turned off: version 55 with it does not go on with a query whose shuffled rows were lost
/// with an executor.
///
/// # Errors
/// If the URL is none.
pub async fn connect(url: &str, config: SessionConfig) -> Result<SessionContext> {
    let state = SessionStateBuilder::new()
        .with_config(config.upgrade_for_ballista().with_ballista_adaptive_query_planner(false))
        .with_default_features()
        .build();
    let context = SessionContext::remote_with_state(url, state).await?;
    // Ballista replaces the functions that a state brings.
    for function in functions(None) {
        context.register_udf(function);
    }
    Ok(context)
}
