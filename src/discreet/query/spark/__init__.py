"""Tables in Spark: it reads and spreads rows by unit; every task counts its units with the kernel of all engines.

SparkEngine(tables, …)   what a session asks
partition_tasks          what tasks do, without a word of Spark: route rows to parts, count a part
partition_reports        what a task reports, and what the driver refuses: lost parts, parts twice, units in two
plan_rules               which plans and clusters are taken
"""
