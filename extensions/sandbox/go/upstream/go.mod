module openfleet.clusters/sandbox/upstream

go 1.26.0

require (
	github.com/openshift-online/ocm-sdk-go v0.1.510
	github.com/openshift/api v0.0.0-20250609083529-2b129d95495e
	github.com/openshift/hypershift/api v0.0.0-20251120083117-dea6d2f24af6
	open-cluster-management.io/api v1.1.0
)
