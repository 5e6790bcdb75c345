// Copyright The Streamweir Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Writes of the operator, as the gate names them.
const (
	writePlan      = "apply ConfigMap"
	writeInjection = "apply PodInjection"
	writeResize    = "patch Pod resize"
	writeTouch     = "patch Pod"
	writeStatus    = "patch StreamApp status"
)

// gate stands between the operator and the API server. It counts what the operator writes, and can refuse it.
type gate struct {
	mu     sync.Mutex
	writes []string // that were sent, in order
	refuse func(write string) error
}

// refuseWith sets what happens to writes from now on: an error keeps one from being sent. Nil lets everything through.
func (g *gate) refuseWith(refuse func(write string) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = refuse
}

// sent counts the writes of this name that were let through.
func (g *gate) sent(write string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := 0
	for _, name := range g.writes {
		if name == write {
			count++
		}
	}
	return count
}

// all gives every write that was let through.
func (g *gate) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.writes...)
}

func (g *gate) pass(verb string, object any, subresource string) error {
	kind := fmt.Sprintf("%T", object)
	kind = strings.TrimSuffix(kind[strings.LastIndex(kind, ".")+1:], "ApplyConfiguration")
	write := strings.TrimSpace(verb + " " + kind + " " + subresource)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse != nil {
		if err := g.refuse(write); err != nil {
			return err
		}
	}
	g.writes = append(g.writes, write)
	return nil
}

// withoutWatch makes an interceptor's client of one that reads from a cache.
type withoutWatch struct{ client.Client }

func (withoutWatch) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("the reconciler watches through its manager")
}

// around puts the gate around a client.
func (g *gate) around(c client.Client) client.Client {
	return interceptor.NewClient(withoutWatch{c}, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := g.pass("create", o, ""); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := g.pass("update", o, ""); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := g.pass("delete", o, ""); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := g.pass("patch", o, ""); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := g.pass("apply", o, ""); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := g.pass("patch", o, sub); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := g.pass("update", o, sub); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
}
